// Package polyglot tests that programs in several languages, each with the
// client library that its users have, can share a lock on one server. The
// programs in testdata are as small as they can be: they are examples too.
// All of them understand two ways to be called:
//
//	worker HOST PORT call FUNCTION LOCK [ARGUMENT...]
//	worker HOST PORT work LOCK COUNTER NAME ROUNDS
//
// 'call' makes one call and prints the elements of its reply, one on a line.
// 'work' takes the lock so many times, each time adds one to a counter by GET
// and SET, and prints the fencing token.
package polyglot
