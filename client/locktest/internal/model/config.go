// SPDX-License-Identifier: Apache-2.0

package model

// Level is what must be true before a client counts on a grant.
type Level uint8

// The levels.
const (
	Default  Level = iota // the primary has it
	Replicas              // all replicas have it too, which WAIT says
	Guarded               // the primary has it, and its memory has been unbroken for Config.Guard
)

// Failover is how a server's memory is broken.
type Failover uint8

// The failovers. The replica lags behind by any number of writes in each of them.
const (
	Never     Failover = iota
	Promotion          // the primary dies and the replica is promoted
	Restart            // the primary comes back with an empty memory
	Split              // the replica is promoted, and the old primary goes on for Config.Linger ticks
)

// Config is what is explored. Times are ticks.
type Config struct {
	Name     string
	Progress bool        // check also that client 0 is served in the end
	Admitted []Invariant // violations that are noted and passed by
	Most     int         // states; more is an error. 0: no bound

	Clients int   // at most maxClients
	Pollers int   // how many of the clients wait without a subscription
	More    uint8 // how many goroutines more than one of client 0 may want the lock

	Level       Level
	Lease       int8 // a whole lease
	Belief      int8 // what a client counts on, from when it sent the call; 0: Lease
	Provisional int8 // the lease of a lock that was handed over
	Silence     int8 // a waiter that cannot be told and has not asked for more ticks is gone

	Failover Failover
	Linger   int8 // how long the old primary goes on after a Split
	Guard    int8 // a server whose memory is younger grants nothing
	// a primary that has not heard from its replica for more ticks serves nobody; 0: it does not look
	Contact int8
	Patient bool // the replica is promoted only when it has not heard for more than Contact ticks

	Crashes uint8 // how many clients may die
	Strays  uint8 // how many calls may be run after nobody waits for them any more
	Breaks  uint8 // how often an operator may break a lock
	Joint   bool  // clients 0 and 1 have holds of one owner; nobody waits
	Sure    bool  // each call is answered
	Drops   bool  // connections of waiters may be lost, and come back
	Odd     bool  // tries, declines, calls that are refused, clients that close
	Ages    bool  // how long ago waiters asked, and how old a lock is, matters

	Flaw   Flaw
	server *library
}

const (
	maxClients = 3
	maxLine    = 2 * maxClients
	line       = 2 // how many ticks a line outlives the last lease: in the library it is longer
)

// Flaw is one rule of the clients that is broken on purpose, to show that an invariant can fail.
type Flaw uint8

// The flaws.
const (
	NoFlaw       Flaw = iota
	UnseenAcks        // a client does not wait for what WAIT says
	NoConfirm         // a client does not confirm what the line gave it before it counts
	LateDeadline      // a client counts a lease from the reply, not from the call
	SharedOwner       // a client uses one owner string for all of its acquisitions
	OldNotes          // a client believes a message that is older than the last reply
	Unnamed           // a renewal does not name its hold
)
