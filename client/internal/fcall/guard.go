package fcall

import (
	"context"
	"time"
)

// guard runs a call until the context ends, or closing does: then its cause is the error. The call's own
// context is undated.
//
// rueidis looks at the context once a connection stands. Before that, a call waits for a connect
// that another call began, with that one's deadline, and while 1,024 commands are unanswered it
// waits for a place among them. So a call whose context can end runs in a goroutine of its own, and
// is left behind when it does. Its outcome is unknown then.
func guard[T any](ctx, closing context.Context, call func(ctx context.Context) (T, error)) (value T, err error) {
	if ctx.Done() == nil {
		return call(ctx)
	}
	if err := ctx.Err(); err != nil {
		return value, err
	}
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := call(undated{ctx})
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return value, ctx.Err()
	case <-closing.Done():
		return value, context.Cause(closing)
	}
}

// undated is a context that still ends, but does not say when. rueidis gives the deadline of a call's
// context to the connection while no other call is on it, and closes the connection when that passes.
// Calls of others, which have come meanwhile, would fail with it.
type undated struct{ context.Context }

func (undated) Deadline() (deadline time.Time, ok bool) { return deadline, false }

// flight is a call of do under way: guard without its allocations, which count here.
type flight struct {
	caller        *Caller
	ctx           context.Context
	function, key string
	args          []string

	done   chan struct{}
	values messages
	err    error
}

// fly is run under a guard.
func (c *Caller) fly(ctx context.Context, function, key string, args []string) (messages, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, _ := c.flights.Get().(*flight)
	if f == nil {
		f = &flight{done: make(chan struct{}, 1)}
	}
	f.caller, f.ctx, f.function, f.key, f.args = c, undated{ctx}, function, key, args
	go f.run()
	select {
	case <-f.done:
		values, err := f.values, f.err
		*f = flight{done: f.done}
		c.flights.Put(f)
		return values, err
	case <-ctx.Done(): // f is left behind, and not used again
		return nil, ctx.Err()
	case <-c.Closing.Done():
		return nil, context.Cause(c.Closing)
	}
}

func (f *flight) run() {
	f.values, f.err = f.caller.run(f.ctx, f.function, f.key, f.args)
	f.done <- struct{}{}
}
