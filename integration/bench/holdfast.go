package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

const holdfastName = "holdfast"

func holdfastRival() rival {
	return rival{
		Name:     holdfastName,
		Settings: "client.Open with the defaults, one client for each process or simulated process",
		Sends:    []string{"fcall", "fcall_ro", "ssubscribe", "sunsubscribe", "get", "pttl", "multi", "exec", "client|caching"},
		Renews:   true,
		Open:     openHoldfast,
		Key:      holdfastKey,
		Ends: func(ctx context.Context, p place, name string) (time.Time, error) {
			// while somebody waits the key outlives the lease
			return p.fieldEnds(ctx, holdfastKey(name), "until")
		},
	}
}

func holdfastKey(name string) string { return "lock:" + name }

type holdfastLocker struct{ client *client.Client }

func openHoldfast(_ context.Context, p place, u use) (locker, error) {
	c, err := client.Open(p.option(), client.Config{Lease: u.Lease})
	if err != nil {
		return nil, err
	}
	return holdfastLocker{c}, nil
}

func (h holdfastLocker) Lock(ctx context.Context, name string) (hold, error) {
	l, err := h.client.Acquire(ctx, name)
	return holdfastHold(l), err
}

func (h holdfastLocker) TryLock(ctx context.Context, name string) (hold, error) {
	l, err := h.client.TryAcquire(ctx, name)
	if errors.Is(err, client.ErrBusy) {
		return hold{}, errBusy
	}
	return holdfastHold(l), err
}

func (h holdfastLocker) Close() { h.client.Close() }

func holdfastHold(l *client.Lock) hold {
	if l == nil {
		return hold{}
	}
	return hold{Unlock: func() error { return l.Release(context.Background()) }, Context: l.Context()}
}
