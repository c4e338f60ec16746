// SPDX-License-Identifier: Apache-2.0

// Package locktest gives tests a Redis in memory with the Holdfast library loaded, and the means to
// do to locks what production does: take them away, cut the network, fail over, let time pass.
//
//	s := locktest.New(t)
//	c := s.Client(client.Config{}) // a real *client.Client
//	go job.Run(ctx, c)             // the code under test
//	s.Await("job", func(i client.Info) bool { return i.Held })
//	s.Take("job", time.Minute)     // somebody else has the lock now
//
// The clients are the real ones, and the server runs the real functions: only the server under them
// and the network between them are replaced. Nothing listens on a port, and nothing is installed.
//
// # Time
//
// In a [testing/synctest] bubble time is virtual: an hour with all its renewals takes a fraction of
// a second, and time.Sleep is how a test lets it pass. Call New within the bubble. Outside of one,
// time is real and cannot be moved for the client. Leases of some 100 ms ([client.Config].Lease)
// keep such tests short, and [Server.Expire] ends a lease at the server alone.
//
// # Concurrency
//
// Tests may run in parallel: each Server is a world of its own. The methods of a Server may be
// called by several goroutines, but those that can end the test only by the one that runs the test of New,
// as with t.Fatal: they say 'fails the test', and all that take a lock's name, Failover, Forget and Restore do
// so for a bad argument, or while the Server is stopped or full. Methods do not block unless they say so.
//
// In a bubble all is in memory. A goroutine that waits for a real socket, as of httptest.NewServer or of a
// database, stops its time, and the test hangs without a message: call ServeHTTP with a recorder.
//
// # Guarded locks
//
// The Server remembers for long enough for any [client.Config].Guard. Failover, Forget, and Stop
// with Start let its memory begin anew: then nobody gets a guarded lock for that long.
//
// # What is modelled
//
// A single Redis 7.0 with the commands that Holdfast and its client use, client-side caching,
// sharded messages, expiry and RESP2 and RESP3. Not modelled: Cluster and Sentinel (Failover
// looks as it does behind one address), replicas that a client can see (with Config.Replicas nobody
// gets a lock: ErrNotReplicated), TLS, users and their rights, memory limits but Full, and all other
// commands. A command that is not modelled gets an error, and fails the test.
package locktest
