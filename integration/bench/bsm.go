// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
)

func bsmRival() rival {
	return rival{
		Name: "bsm",
		Settings: "bsm/redislock on go-redis; polls: LinearBackoff(1 ms), under a context with a deadline " +
			"(without one it gives up after the lease); no renewal of its own",
		Sends: []string{"evalsha", "eval"},
		Open: func(p place, lease time.Duration) (locker, error) {
			redis := p.goRedis()
			c := redislock.New(redis)
			take := func(options *redislock.Options) func(context.Context, string) (hold, error) {
				return func(ctx context.Context, name string) (hold, error) {
					l, err := c.Obtain(ctx, name, lease, options)
					if errors.Is(err, redislock.ErrNotObtained) {
						err = errBusy
					}
					return hold{Unlock: func() error { return l.Release(context.Background()) }}, err
				}
			}
			poll := &redislock.Options{RetryStrategy: redislock.LinearBackoff(time.Millisecond)}
			return locker{Lock: take(poll), TryLock: take(nil), Close: func() { _ = redis.Close() }}, nil
		},
	}
}
