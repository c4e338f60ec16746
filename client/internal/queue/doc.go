// SPDX-License-Identifier: Apache-2.0

// Package queue is the queue of a key in this process: goroutines stand in it, and it stands in the
// server's line, with one owner string at a time. Machine is all of its decisions: Step takes what
// happened and says what is to be done. It has no clock, no goroutine, no map and no mutex. Queues makes
// the calls, and has the timers and the subscriptions.
//
// The states. Absent: nobody; the key is out of the map. Trying: the first waiter, g, makes the call
// itself. Held: h has a holder here. Asking: a wait is under way. Standing: in line, or in the pause
// after a call that failed; a timer runs. Confirming: granted, but a renewal must be answered first, or
// is repeated after a pause.
//
//	event    | Absent    | Trying             | Held              | Asking              | Standing            | Confirming
//	Enter    | g: Trying | append; a try: own | append; a try:    | append; a try: busy | as in Asking        | as in Asking
//	         |           | call               | busy              | if just heard, else |                     |
//	         |           |                    |                   | own call            |                     |
//	End      | -         | g: ask,            | unlink            | unlink, reseat      | unlink, reseat      | unlink, reseat
//	         |           | else unlink        |                   |                     |                     |
//	Yes      | -         | serve; late: ask,  | -                 | serve; late: ask    | -                   | serve; late: ask
//	         |           | a try: unreachable |                   |                     |                     |
//	Grant    | undo      | undo               | undo              | keep; another's:    | serve; never        | -; another's: undo
//	         |           |                    |                   | undo                | answered: ask; an   |
//	         |           |                    |                   |                     | old one: -;         |
//	         |           |                    |                   |                     | another's: undo     |
//	No       | -         | a try: busy; ask   | -                 | serve what was      | -                   | ask
//	         |           |                    |                   | kept, or Standing   |                     |
//	NoAnswer | -         | verdicts, reseat,  | -                 | verdicts, reseat,   | -                   | verdicts, reseat,
//	         |           | Standing           |                   | kept: ask, Standing |                     | pause
//	Denied   | -         | g: refused; ask    | -                 | asker: refused; ask | -                   | asker: refused; ask
//	Timer    | -         | -                  | -                 | a No: ask           | ask                 | renew, if no call
//	         |           |                    |                   |                     |                     | is under way
//	Release  | -         | -                  | h's: pass, or     | -                   | -                   | -
//	         |           |                    | give back and ask |                     |                     |
//	Close    | -         | all: closed; undo  | all: closed,      | all: closed; undo   | all: closed; undo   | all: closed; undo
//	         |           |                    | forget h          |                     |                     |
//
// A try that wants a fresh answer makes its own call wherever others are. Enter of one that knows that the
// lock was refused just now asks at once, from Absent. A holder that lost its lock releases it too: what
// another server may have is given back.
//
// Release and Grant of an owner that the queue knows nothing of, and answers to calls that were abandoned,
// change nothing here; such a Grant is undone. One that an answer told of before is not undone, also when
// the lock is over: the message may cross its release.
//
// ask: wait with the owner of the place, for the head: the first waiter whose deadline is not over. The
// others are told. The owner is bound to guard, minimum and label of its first call: a head with
// others undoes it and gets a fresh one, or a guarded waiter would take over what an unguarded one was
// granted. Nobody there: undo, Absent. A call under way is abandoned first.
//
// reseat: ask if nobody waits or the head has another guard, minimum or label; else nothing.
//
// serve: as ask, if nobody waits or guard, minimum or label is another; Confirming if the answer says so or
// was asked for by other terms than the head's, or if it came by a message and has a minimum, has little
// left or was kept for an answer; else the head has the lock: Held, and the owner of the place is spent.
//
// undo: leave. Of the place without a token, because a newer grant is possible; of a message with its
// token, because an old message may name the owner of h. An owner with a call that had no answer, or
// was abandoned, is left again for half a minute after its undo, its release or its loss: that call may
// run late.
//
// No with Spent, in each state: undo the owner, Standing until the timer, ask with a fresh one. Denied with Left:
// nothing of the owner is to be undone, unless a call of it may run late.
package queue
