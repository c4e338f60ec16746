// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/integration/server"
)

const holdfastName = "holdfast"

func holdfastRival() rival {
	return rival{
		Name:     holdfastName,
		Settings: "client.Open with the defaults, one client for each simulated process; quorum.Open on several servers",
		Sends:    []string{"fcall", "fcall_ro", "ssubscribe", "sunsubscribe", "get", "pttl", "multi", "exec", "client|caching"},
		Several:  true,
		Limits:   true,
		Shares:   true,
		Open:     openHoldfast,
	}
}

func openHoldfast(p place, lease time.Duration) (l locker, err error) {
	var c *client.Client
	if p.Kind == server.KindSeveral {
		var options []rueidis.ClientOption
		for _, one := range p.each() {
			options = append(options, one.option())
		}
		c, err = quorum.Open(options, client.Config{Lease: lease})
	} else {
		c, err = client.Open(p.option(), client.Config{Lease: lease})
	}
	if err != nil {
		return locker{}, err
	}
	take := func(l *client.Lock, err error) (hold, error) {
		switch {
		case errors.Is(err, client.ErrBusy):
			return hold{}, errBusy
		case err != nil:
			return hold{}, err
		}
		return hold{Unlock: func() error { return l.Release(context.Background()) }, Context: l.Context()}, nil
	}
	return locker{
		Lock:    func(ctx context.Context, name string) (hold, error) { return take(c.Acquire(ctx, name)) },
		TryLock: func(ctx context.Context, name string) (hold, error) { return take(c.TryAcquire(ctx, name)) },
		Beside: func(ctx context.Context, w wish) (hold, error) {
			switch {
			case w.limit > 0:
				return take(c.Acquire(ctx, w.name, client.WithLimit(w.limit)))
			case !w.alone:
				return take(c.Acquire(ctx, w.name, client.WithShared()))
			}
			return take(c.Acquire(ctx, w.name))
		},
		Close: func() { c.Close() },
	}, nil
}
