// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Do runs fn while holding the lock: Acquire, fn under the lock's context, Release, also when fn
// panics. fn's error is returned untouched, unless the lock was lost; fn is not run when the lock was not
// acquired, and that error is returned instead.
//
// When the lock was lost meanwhile, Do returns a *LostError, beside fn's error if that is none, also when
// it shows only at the Release: fn's work may have run beside another holder. So fn may return what it got
// from a query that ended with its context. A Release that the
// server did not answer is only logged: fn's work was done under the lock, and the lease ends it.
// Do returns when ctx has ended and fn has returned, see [Lock.Release].
func (c *Client) Do(ctx context.Context, name string, fn func(context.Context) error, opts ...Option) error {
	_, err := Value(ctx, c, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }, opts...)
	return err
}

// TryDo is Do with TryAcquire: it does not wait.
func (c *Client) TryDo(ctx context.Context, name string, fn func(context.Context) error, opts ...Option) error {
	_, err := TryValue(ctx, c, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }, opts...)
	return err
}

// Value is Do for a function with a result: it returns fn's value, and errors as Do. With the
// *LostError of a lock that was lost it returns fn's value too.
func Value[T any](ctx context.Context, c *Client, name string, fn func(context.Context) (T, error), opts ...Option) (value T, err error) {
	lock, err := c.Acquire(ctx, name, opts...)
	if err != nil {
		return value, err
	}
	return run(ctx, lock, fn)
}

// TryValue is Value with TryAcquire: it does not wait.
func TryValue[T any](ctx context.Context, c *Client, name string, fn func(context.Context) (T, error), opts ...Option) (value T, err error) {
	lock, err := c.TryAcquire(ctx, name, opts...)
	if err != nil {
		return value, err
	}
	return run(ctx, lock, fn)
}

func run[T any](ctx context.Context, lock *Lock, fn func(context.Context) (T, error)) (value T, err error) {
	defer func() {
		released := lock.Release(ctx)
		var lost *LostError
		if errors.As(released, &lost) {
			err = beside(err, lost)
		} else if released != nil {
			lock.client.events.unreleased(lock.Name(), released)
		}
	}()
	return fn(lock.Context())
}

// beside is err, of a function, and that its lock was lost, unless err says as much of that lock already: of a
// client that closes, and of a lock that was lost then, the second counts.
func beside(err, lost error) error {
	var said, ours *LostError
	switch {
	case err == nil:
		return lost
	case errors.As(err, &said) && errors.As(lost, &ours) && said.Name == ours.Name && said.Fence == ours.Fence &&
		(errors.Is(err, ErrLost) || !errors.Is(lost, ErrLost)):
		return err
	}
	return fmt.Errorf("%w: %w", err, lost)
}

// Wrap makes a function that holds a lock while it runs, the lock named by its argument: what annotations do
// elsewhere, with the value and the error of fn kept. An empty name is an ErrArgument, not a shared default.
func Wrap[A, T any](c *Client, name func(A) string, fn func(context.Context, A) (T, error), opts ...Option) func(context.Context, A) (T, error) {
	return func(ctx context.Context, arg A) (T, error) {
		return Value(ctx, c, name(arg), func(ctx context.Context) (T, error) { return fn(ctx, arg) }, opts...)
	}
}

// Name joins parts, as fmt.Sprint writes them, to a lock's name with ':'. A ':' or '%' within a part is
// escaped (%3A, %25), so different texts never make the same name. The text of a pointer, a func or a channel
// can be its address, and each caller would have a lock of its own: with one that has no String, the name is
// empty, an ErrArgument. One within a part, as in a []*int, is not noticed.
func Name(parts ...any) string {
	escape := strings.NewReplacer("%", "%25", ":", "%3A")
	texts := make([]string, len(parts))
	for i, part := range parts {
		switch reflect.ValueOf(part).Kind() {
		case reflect.Pointer, reflect.UnsafePointer, reflect.Func, reflect.Chan:
			if _, says := part.(fmt.Stringer); !says {
				return ""
			}
		}
		texts[i] = escape.Replace(fmt.Sprint(part))
	}
	return strings.Join(texts, ":")
}
