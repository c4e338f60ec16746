package client

import (
	"errors"
	"fmt"
	"time"
)

// What happened, for errors.Is. The typed errors below carry the data, for errors.As.
var (
	ErrBusy        = errors.New("held by another")            // *BusyError
	ErrTimeout     = errors.New("waited too long")            // *WaitError
	ErrLost        = errors.New("lock lost")                  // *LostError; the more precise ones follow
	ErrExpired     = errors.New("the lease ended")            // is also ErrLost: not renewed in time, or the server could not be reached
	ErrTaken       = errors.New("the server says not ours")   // is also ErrLost: deleted, evicted, taken after a failover, or broken and the news not yet here
	ErrBroken      = errors.New("broken by an operator")      // is also ErrLost: see LostError.Reason
	ErrMaxHold     = errors.New("held for the maximum time")  // is also ErrLost
	ErrMaxRenewals = errors.New("renewed the maximum number") // is also ErrLost
	ErrReleased    = errors.New("released")                   // the cause of a lock's context after its Release
	ErrNotHeld     = errors.New("not held")                   // released before
	ErrClosed      = errors.New("client closed")
	ErrUnreachable = errors.New("server unreachable") // an outage, never 'held by another'; the outcome may be unknown
	ErrLibrary     = errors.New("functions library missing or too old")
	ErrDenied      = errors.New("permission denied by the server")
	ErrLineFull    = errors.New("line is full") // or the set of holds
	ErrNotALock    = errors.New("the key is not a lock")
	ErrArgument    = errors.New("bad argument")
)

// BusyError says who has the lock. It is ErrBusy.
type BusyError struct {
	Name      string
	Holder    Holder
	Remaining time.Duration // of the holder's lease; negative: it has none (a plain string set by another service)
	Waiters   int           // in line for it
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("holdfast: lock %q: %v: %s, lease %v, %d waiting", e.Name, ErrBusy, e.Holder, e.Remaining, e.Waiters)
}

// Unwrap makes it ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// WaitError says that Acquire stopped waiting, and what it knew last. It is ErrTimeout when MaxWait, the tries or the
// context's deadline ended it, and it is the context's error and cause too.
type WaitError struct {
	Name     string
	Waited   time.Duration
	Position int        // in line, the first is 1; 0: not in line
	Last     *BusyError // who had it when last heard; nil if never heard
	Err      error
}

func (e *WaitError) Error() string {
	text := fmt.Sprintf("holdfast: lock %q: stopped waiting after %v: %v", e.Name, e.Waited.Round(time.Microsecond), e.Err)
	if e.Last != nil {
		text += fmt.Sprintf(" (held by %s", e.Last.Holder)
		if e.Position > 0 {
			text += fmt.Sprintf(", place %d in line", e.Position)
		}
		text += ")"
	}
	return text
}

// Unwrap returns why, and the last BusyError.
func (e *WaitError) Unwrap() []error {
	if e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}

// LostError is why a lock ended before its Release: the cause of its context, and what Renew and Release return then. It is
// ErrLost, and one of ErrExpired, ErrTaken, ErrBroken, ErrMaxHold, ErrMaxRenewals.
type LostError struct {
	Name   string
	Owner  string
	Fence  int64
	Reason string // of a break, in the words of whoever broke it
	Err    error
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("holdfast: lock %q: %v: %v", e.Name, ErrLost, e.Err)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Unwrap makes it ErrLost and what it says in Err.
func (e *LostError) Unwrap() []error { return []error{ErrLost, e.Err} }

// opError names the operation and the lock that an error belongs to.
func opError(op, name string, err error) error {
	return fmt.Errorf("holdfast: %s %q: %w", op, name, err)
}
