// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis/rueidislock"
)

func rueidislockRival() rival {
	return rival{
		Name: "rueidislock",
		Settings: "KeyMajority 1 and NoLoopTracking, as its README says for one Redis of 7.0.5 or later; KeyValidity is the lease, " +
			"TryNextAfter 1 s so that a loaded machine does not make its requests time out",
		Sends: []string{"evalsha", "eval"},
		Open: func(p place, lease time.Duration) (locker, error) {
			l, err := rueidislock.NewLocker(rueidislock.LockerOption{ClientOption: p.option(), KeyMajority: 1, NoLoopTracking: true,
				KeyValidity: lease, TryNextAfter: time.Second})
			if err != nil {
				return locker{}, err
			}
			take := func(lock func(context.Context, string) (context.Context, context.CancelFunc, error)) func(context.Context, string) (hold, error) {
				return func(ctx context.Context, name string) (hold, error) {
					_, unlock, err := lock(ctx, name)
					if errors.Is(err, rueidislock.ErrNotLocked) {
						err = errBusy
					}
					return hold{Unlock: func() error { unlock(); return nil }}, err
				}
			}
			return locker{Lock: take(l.WithContext), TryLock: take(l.TryWithContext), Close: l.Close}, nil
		},
	}
}
