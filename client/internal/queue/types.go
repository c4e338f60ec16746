// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
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
	End                  // the context of Waiter has ended
	Yes                  // an answer: Token to Top are ours. Late, Confirm
	Grant                // a message: Token to Top are Owner's. Confirm
	No                   // an answer: Token is the holder's. Spent
	NoAnswer             // a call had none
	Denied               // an answer that is an error, and no outage: of the waiter it was asked for
	Timer                // the pause is over, or the key or the subscription has changed
	Release              // the holder of Owner and Token leaves, or has lost the lock. Over
	Close                // the client closes
)

// Event is for Machine.Step.
type Event struct {
	Kind    Kind
	Late    bool          // Yes: our lease was over when it came
	Confirm bool          // Yes, Grant: to be confirmed by a renewal, because too little is left or known
	Spent   bool          // No: the owner string is used up
	Left    bool          // Denied: the server has taken the owner out of its line
	Unknown bool          // of a call: it may have run, or may run yet
	Over    bool          // Release: no pass inside the process: the lock is lost, or others have waited for long
	Now     time.Duration // since an epoch of the caller's, and not 0
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
	GiveBack               // what Owner has is to be given back, by the one who released or lost it. Again
	Serve                  // Waiter has the lock: Owner, Token to Top. First, Terms, Again
	Fail                   // Waiter's call has ended: Err
)

// The ends of a waiter's call, beside fcall.ErrBusy and fcall.ErrUnreachable.
var (
	ErrTimeout = errors.New("the wait is over") // its context or its deadline
	ErrClosed  = errors.New("closing")
	errRefused = errors.New("the answer was an error")
	errOwn     = errors.New("a call of its own is needed, with an owner of its own")
)

// Action is what Machine.Step wants done.
type Action struct {
	Op     Op
	First  bool // Serve: a new holding; false: the next token of the one that is here
	Again  bool // a call with Owner may run late: whatever gives it back is to be repeated for half a minute
	Run    bool // calls: others want the lock too, so tokens for a run are worth asking for
	No     uint64
	Owner  string
	Token  int64
	Top    int64
	Terms  *lease.Terms
	Waiter *Waiter
	Err    error
}

// Waiter is a goroutine that waits for the lock. Request, Until and Hot are set before it enters; after
// Serve or Fail the Machine knows it no more.
type Waiter struct {
	Request
	Until time.Duration // its deadline, as Event.Now; 0: none
	Hot   bool          // the lock was refused just now, so stand in line at once

	ended              // the loop's
	next, prev *Waiter // nil: not in the queue
	fails      uint8   // of calls that were begun since it came
	since      uint64  // number of the last call when it came
	heard      uint64  // answers when it came
}

// verdict is why a wait ends whose time is over: it may be the server's doing.
func (m *Machine) verdict() error {
	if m.due != 0 && m.now-m.due >= silence {
		return fcall.ErrUnreachable
	}
	return ErrTimeout
}

// fifo is a ring of waiters; to remove one does not depend on how many there are.
type fifo struct {
	first *Waiter
	n     int
}

func (f *fifo) push(w *Waiter) {
	if f.first == nil {
		f.first, w.prev = w, w
	}
	last := f.first.prev
	w.prev, w.next, last.next, f.first.prev = last, f.first, w, w
	f.n++
}

func (f *fifo) remove(w *Waiter) {
	if f.n--; f.n == 0 {
		f.first = nil
	} else if f.first == w {
		f.first = w.next
	}
	w.prev.next, w.next.prev = w.next, w.prev
	w.next, w.prev = nil, nil
}

// stand is how a Machine stands: all that ends when nobody is there.
type stand struct {
	state State
	h     Action // Serve: what a holder of this process has

	owner string // of the place; "": the next call has a fresh one
	owes  bool   // the server may know the owner
	doubt bool   // a call with it has no answer, and may run late
	above int64  // grants up to this one are void; negative: all, because no wait was answered
	token int64  // granted, or kept for the answer to come
	top   int64

	call    Action // the last one
	calling bool   // it is under way
	news    bool   // of the key, or a new subscription, since it was made: its answer can be older
	others  bool   // somebody stood behind another one
	answers uint64 // to calls
	heardAt time.Duration
	due     time.Duration // since when an answer is due; 0: none is
}

// State is where the queue is.
func (m *Machine) State() State { return m.state }

// Pauses reports whether a Timer is to come after a pause.
func (m *Machine) Pauses() bool { return m.state == Standing || m.state == Confirming && !m.calling }

// Waiting is how many wait.
func (m *Machine) Waiting() int { return m.fifo.n }

// wants reports whether the answer to a call is waited for.
func (m *Machine) wants(a Action) bool { return m.calling && a.No == m.no }

// fail ends w's call without the lock.
func (m *Machine) fail(w *Waiter, err error) {
	if w.next != nil {
		m.fifo.remove(w)
	}
	m.do(Action{Op: Fail, Waiter: w, Err: err})
}
