package fcall

import (
	"context"
	"fmt"
	"time"
)

// rueidis does not always return when a context ends: while a connection is being made, and while
// 1,024 commands are unanswered, it waits. So a call whose context can end runs in a goroutine
// of its own, and is left behind when the context ends. Its outcome is unknown then.

// unending is the context of such a call. It has no deadline and no Done, only an Err.
//
// rueidis checks Err before it writes a command: a call that nobody waits for any more is not sent.
// A deadline it would give to the connection while no other call uses it, and calls that came later
// would fail with it. With Done it would return before the answer. Without, the goroutine ends with
// the answer or the connection, so abandoned calls can be counted and their changes noticed.
type unending struct{ context.Context }

func (unending) Deadline() (deadline time.Time, ok bool) { return deadline, false }

func (unending) Done() <-chan struct{} { return nil }

// flight is a call under way.
type flight[T any] struct {
	fn    func(context.Context) (T, error)
	done  chan struct{} // has room for one
	value T
	err   error
}

// fly runs a flight. It returns when ctx or closing ends, with the error of ctx or the cause of
// closing. Then it has not landed, and f must not be used again.
func (f *flight[T]) fly(ctx, closing context.Context, c *Caller) (landed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if n := c.abandoned.Load(); n >= maxAbandoned {
		return false, &Refusal{ErrUnreachable, fmt.Sprintf("%d calls were given up, and have no answer yet", n)}
	}
	if ctx.Done() == nil {
		f.value, f.err = f.fn(ctx)
		return true, f.err
	}
	go func() {
		f.value, f.err = f.fn(unending{ctx})
		f.done <- struct{}{}
	}()
	select {
	case <-f.done:
		return true, f.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-closing.Done():
		err = context.Cause(closing)
	}
	c.abandoned.Add(1)
	go func() {
		<-f.done
		c.abandoned.Add(-1)
	}()
	return false, err
}

// Guard runs fn as one call of c. It returns when ctx or closing ends, whatever fn does. fn's context
// has no Done, only an Err, unless ctx cannot end.
func Guard[T any](ctx, closing context.Context, c *Caller,
	fn func(context.Context) (T, error)) (value T, err error) {
	f := &flight[T]{fn: fn, done: make(chan struct{}, 1)}
	landed, err := f.fly(ctx, closing, c)
	if landed {
		value = f.value
	}
	return value, err
}
