// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"time"
)

// Observer is told what happens to the locks of a Client: for metrics, traces and logs. A field
// that is nil is not called, and a Client without an Observer pays nothing. The fields are not
// written any more once a Client has the Observer.
//
// Asked, Acquired, Refused and Released are called at the moment itself, by the goroutine of the call (Released
// of several locks by one for each), several at a time; so is Lost, for a lock that is lost while its call
// returns. The others are called one after the other by a goroutine of their own: renewals do not wait for
// them. When 8,192 wait, further calls of Renewed are left out, which the log says; none of Lost ever is. No
// lock of the Client's own is held. They must not panic, nor end their goroutine: what a call got stays held
// then, and nothing more may be told.
type Observer struct {
	// Asked: TryAcquire or Acquire begins, also within Do, Value, Wrap, Once and Lead. One call of
	// Acquired or of Refused follows.
	Asked func(ctx context.Context, a Ask)
	// Acquired: the call returns a Lock. call is its context, and lock that of the Lock. What it
	// returns is derived from lock by context.WithValue, or lock itself, and becomes the Lock's
	// context: so work under the lock finds a span there. lock does not carry the Lock yet: Fence of it is not
	// a.Fence.
	Acquired func(call, lock context.Context, a Acquisition) context.Context
	// Refused: the call returns no Lock.
	Refused func(ctx context.Context, r Refusal)
	// Renewed: the server answered to a renewal, or did not.
	Renewed func(r Renewal)
	// Released and Lost end what Acquired began, unless that re-entered: one of them is called, once.
	// Released: the last Lock was released, in time. Lost: the work's time is over for another reason.
	Released func(t Tenure)
	Lost     func(t Tenure)
	// Connection: renewals are not answered, or are again.
	Connection func(c Connection)
}

// Ask is the beginning of a call.
type Ask struct {
	Name string
	Wait bool // Acquire
}

// Acquisition says how a Lock was acquired.
type Acquisition struct {
	Name, Owner string
	Fence       int64
	Hold        any       // comparable: that of the Tenure that ends it, or of what was re-entered
	Asked       time.Time // when the call began
	Wait        bool      // as in Ask
	Passed      bool      // from one goroutine of this process to another
	Reentered   bool      // in memory: it is the tenure of an earlier Acquisition
	// who had the lock when the server last said so; nil if the call did not wait at the server, or
	// never heard, or if several had it; with WithPolling, its Holder is zero then
	Behind *BusyError
}

// Refusal says why a call returned no Lock.
type Refusal struct {
	Name  string
	Asked time.Time // when the call began
	Wait  bool      // as in Ask
	Err   error     // what the call returns
}

// Renewal is one renewal of a lease, also one by hand.
type Renewal struct {
	Name string
	Hold any           // as in Acquisition
	Took time.Duration // until the answer, or until none was waited for any more
	// nil: renewed. ErrTaken: the lock is another's. ErrUnreachable: no answer in time; one that comes later counts
	Err error
}

// Tenure is a holder's time with a lock, when it is over.
type Tenure struct {
	Name, Owner string
	Fence       int64
	Hold        any           // as in Acquisition
	Held        time.Duration // until its work had to end, or its Release began
	Passed      bool          // to another goroutine of this process
	// of Lost a *LostError; of Released what Release returns: the server may not know, or says that the
	// lock was another's
	Err error
}

// Connection is a change of what is known about the server.
type Connection struct {
	Err error // nil: it answers again
}

// JoinObservers makes one Observer of several. Each is told, in this order; the context that Acquired
// returns goes from one to the next. Those that are nil are left out.
func JoinObservers(observers ...*Observer) *Observer {
	joined := &Observer{}
	for _, o := range observers {
		if o == nil {
			continue
		}
		joined.Asked = both(joined.Asked, o.Asked)
		joined.Refused = both(joined.Refused, o.Refused)
		joined.Renewed = each(joined.Renewed, o.Renewed)
		joined.Released = each(joined.Released, o.Released)
		joined.Lost = each(joined.Lost, o.Lost)
		joined.Connection = each(joined.Connection, o.Connection)
		if first, second := joined.Acquired, o.Acquired; first == nil {
			joined.Acquired = second
		} else if second != nil {
			joined.Acquired = func(call, lock context.Context, a Acquisition) context.Context {
				return second(call, first(call, lock, a), a)
			}
		}
	}
	return joined
}

func each[T any](first, second func(T)) func(T) {
	if first == nil {
		return second
	} else if second == nil {
		return first
	}
	return func(t T) {
		first(t)
		second(t)
	}
}

func both[T any](first, second func(context.Context, T)) func(context.Context, T) {
	if first == nil {
		return second
	} else if second == nil {
		return first
	}
	return func(ctx context.Context, t T) {
		first(ctx, t)
		second(ctx, t)
	}
}
