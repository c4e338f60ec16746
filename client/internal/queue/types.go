package queue

import (
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// State is where a Machine is; see the table of the package.
type State uint8

// The states.
const (
	Absent State = iota
	Trying
	Held
	Asking
	Standing
	Confirming
)

// Kind is what happened.
type Kind uint8

// The events, and what of an Event they name beside Now. Answers name the No of the call.
const (
	Enter    Kind = iota // Waiter comes
	Try                  // Waiter comes, for one call
	End                  // the context of Waiter has ended
	Yes                  // an answer: Token to Top are ours. Late, Confirm
	Grant                // a message: Token to Top are Owner's. Late
	No                   // an answer: Token is the holder's. Spent
	NoAnswer             // a call had none. Unknown
	Denied               // an answer that is an error, and no outage: of the waiter it was asked for
	Timer                // it has fired, or the key or the subscription has changed
	Release              // by the holder of Owner and Token. Over
	Decline              // as Release, but nobody worked under Token
	Lost                 // Owner's holding is over: lost, broken or by our clock
	Close                // the client closes
)

// Event is for Machine.Step.
type Event struct {
	Kind    Kind
	Late    bool          // Yes: our lease was over when it came. Grant: too little is left to go without a renewal
	Confirm bool          // Yes: to be confirmed by a renewal
	Spent   bool          // No: the owner string is used up
	Unknown bool          // NoAnswer: the call may have run, or may run yet
	Over    bool          // Release, Decline: no pass inside the process, others have waited for long
	Now     time.Duration // since an epoch of the caller's
	No      uint64
	Owner   string
	Token   int64
	Top     int64
	Waiter  *Waiter
}

// Op is what is to be done.
type Op uint8

// The actions, and what of an Action they name. Calls name Waiter (whom the server is asked for), its
// Terms, Owner, No and Run.
const (
	Acquire  Op = iota + 1 // a call, by the goroutine of Waiter
	Wait                   // a call
	Renew                  // a call: Token is to be confirmed
	Abandon                // nobody wants the answer to call No
	Undo                   // leave with Owner: all it may have, or Token only if that is not 0. Terms, Again
	GiveBack               // by the one who released: Token is the last that was used, 0: none. Owner, Terms, Again
	Serve                  // Waiter has the lock: Owner, Token to Top. First, Terms, Again
	Fail                   // Waiter's call has ended: Err
	Own                    // Waiter makes a call of its own, with its own owner
	Start                  // the one timer. Short
	Stop                   // the timer
)

// Err is why a waiter's call has ended.
type Err uint8

// The ends.
const (
	Busy        Err = iota // it is held: the last answer, or a holder of this process, says so
	Timeout                // the context or the deadline
	Unreachable            // the server did not answer
	Refused                // the answer was an error
	Closed
)

// Action is what Machine.Step wants done.
type Action struct {
	Op     Op
	Err    Err
	First  bool // Serve: a new holding; false: the next token of the one that is here
	Short  bool // Start: the pause after a failed call; false: until the next question from the line
	Again  bool // a call with Owner may run late: whatever gives it back is to be repeated for half a minute
	Run    bool // calls: others want the lock too, so tokens for a run are worth asking for
	No     uint64
	Owner  string
	Token  int64
	Top    int64
	Terms  *lease.Terms
	Waiter *Waiter
}

// Waiter is a goroutine that waits for the lock. The fields are set before it enters; after Serve,
// Fail or Own the Machine knows it no more.
type Waiter struct {
	Terms       *lease.Terms
	Until       time.Duration // its deadline, as Event.Now; 0: none
	Try         bool          // set by the Machine
	Fresh       bool          // Try: no answer from memory
	GiveUpEarly bool          // for the caller's use
	Hot         bool          // Enter: the lock was refused just now, so stand in line at once

	call       *waiter // the loop's
	next, prev *Waiter
	queued     bool
	fails      uint8  // of calls that were begun since it came
	since      uint64 // number of the last call when it came
	heard      uint64 // answers when it came
}

// bound is what cannot be changed about a place or a grant.
type bound struct {
	guard, minHold time.Duration
	label          string // the owner string shows it
}

func (w *Waiter) bound() bound { return bound{w.Terms.Guard, w.Terms.MinHold, w.Terms.Label} }

func (w *Waiter) over(now time.Duration) bool { return w.Until != 0 && now >= w.Until }

// fifo is a list of waiters; to remove one does not depend on how many there are.
type fifo struct {
	first, last *Waiter
	n           int
}

func (f *fifo) push(w *Waiter) {
	w.queued, w.prev, w.next = true, f.last, nil
	if f.last == nil {
		f.first = w
	} else {
		f.last.next = w
	}
	f.last, f.n = w, f.n+1
}

func (f *fifo) remove(w *Waiter) {
	if w.prev == nil {
		f.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		f.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.queued, w.prev, w.next, f.n = false, nil, nil, f.n-1
}
