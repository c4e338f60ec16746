// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// Verb is what a call asks of the library: the name of a function.
type Verb string

// The verbs. Acquire with a Hold is holdfast_acquire_reentrant.
const (
	Acquire Verb = functions.Acquire // take the lock if it is free
	Wait    Verb = functions.Wait    // take it, or stand in its line, or say how that stands
	Renew   Verb = functions.Renew   // start the lease anew; never shortens it
	Release Verb = functions.Release // give back what was worked under; a minimum is kept
	Finish  Verb = functions.Finish  // give it back, with a value for all who ask for that
	Leave   Verb = functions.Leave   // give back what nobody worked under, and a place in line
	Break   Verb = functions.Break   // take it from its holder
	Inspect Verb = functions.Inspect // who has it; a read
	Holders Verb = functions.Holders // all who have it, page by page; a read
)

// Call is one call, about one lock. What its verb does not name is not looked at.
type Call struct {
	Verb    Verb
	Tracked bool          // the server tells when the key changes; for Renew, Inspect and Acquire
	Key     string        // all
	Owner   string        // all but the reads; Break: only from this owner, "" from anybody
	Hold    string        // all but Break and the reads: the id of a hold; "": a plain lock
	TTL     string        // Acquire, Wait, Renew: the lease, see TTL
	Guard   string        // Acquire, Wait: as TTL; "": none
	MinHold string        // Acquire, Wait: as TTL; "": none
	Channel string        // Wait: where to publish the grant; "": nowhere, the caller polls
	Reason  string        // Break
	MaxWait time.Duration // Wait: from a millisecond to functions.MaxTTL; 0: for as long as it takes
	Tokens  int64         // Acquire, Wait: how many; up to 1: one, and Reply.Top is its Fence
	Crowd   int           // Acquire, Wait: see lease.Terms
	Valued  bool          // Acquire, Wait: a value is an answer
	Value   string        // Finish
	Keep    time.Duration // Finish: for how long the value is kept; at least a millisecond
	From    int64         // Holders: the first slot to look at
	// Renew, Leave: the only token that is meant; 0: any. Release: the last token used of a run
	Fence int64
	All   bool  // Release: all holds of the owner
	Raise int64 // Renew: the least token that the lock shall have; 0: it keeps its own

	// How many replicas must have what Acquire and Renew wrote before the answer counts, and how long
	// the server waits for them. A Caller does not look at it.
	Replicas    int
	ReplicaWait time.Duration
}

// Reply is what a call answers.
type Reply struct {
	Yes   bool  // Acquire, Wait, Renew: it is ours. Release, Leave, Break: it was. Inspect: it is held
	Fence int64 // the token. Yes: of ours, or of what was broken. Wait, Inspect: the holder's
	// Yes, of Acquire and Wait: the last token of the run. Of a limited or shared lock, whose slot stands in
	// place of the number of tokens, there is one token, and Top is as if there were so many
	Top   int64
	Holds int64 // Inspect: of the owner; Release of a Hold: how many are left

	Holder    string        // no, and Inspect, Break: the owner string of who has it; "": nobody
	Remaining time.Duration // no, and Inspect: of the holder's lease, or until somebody can get it; negative: it has none
	Waiters   int64         // no, and Inspect: how many wait. Wait: the place in line; negative: it would be that one, too late
	Why       string        // no, and Inspect: a word of the contract, functions.Why...
	Reason    string        // Why is functions.WhyBroken: in the words of who broke it
	Value     string        // Why is functions.WhyDone: what is kept for Remaining

	ServerMS    int64         // Wait, no: the server's clock
	Subscribers int64         // Wait, no: how many receive the channel at this server
	Again       time.Duration // Wait, no: ask again after this; 0: as the rest of the reply suggests
	// Of several servers. Acquire and Wait, no: the owner string is used up, so undo it (Leave) and take
	// another one. Release and Leave: a server may have something still, so repeat it.
	Spent bool
	// An earlier try of this call had no answer, and may run yet, behind what gives back what this one got.
	Doubt bool

	Page *Page // Holders
}

// Page is some of those who have a lock.
type Page struct {
	Next    int64 // the From of the next one; 0: this is the last
	Holders []Holder
}

// Holder is one of those who have a lock.
type Holder struct {
	Slot, Fence int64
	Owner       string        // "": the slot is kept, nobody has it
	Remaining   time.Duration // negative: it has no lease
}

// Outcome is what became of a call.
type Outcome struct {
	Reply
	Err error
}

// Backend is what locks are asked for: one deployment, one whose replicas must have what it grants,
// or several servers that vote. It is safe for concurrent use.
type Backend interface {
	// Do makes one call. It returns when ctx ends, whatever the server does; the outcome is unknown
	// then, see Unknown.
	Do(ctx context.Context, call Call) (Reply, error)
	// Send makes several calls as one pipeline, and returns an Outcome for each, in their order. Calls
	// of one key and server are executed in their order, but for those that wait for replicas. It returns
	// when ctx ends, as Do.
	Send(ctx context.Context, calls []Call) []Outcome
	// Voting reports whether several servers decide: then there is no line to stand in, no message
	// and no tracking.
	Voting() bool
	// Slot is where a key's messages come from: its hash slot in a Cluster, and one for all elsewhere.
	Slot(key string) uint16
}
