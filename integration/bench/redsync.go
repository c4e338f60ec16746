// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

const redsyncSettings = "polls: WithRetryDelay 1 ms (default 50 to 250 ms), WithTries without limit (default 32), " +
	"WithExpiry the lease; no renewal of its own"

// What redsync sends: SET to take it, a script to give it back.
var redsyncSends = []string{"set", "evalsha", "eval"}

func redsyncRival() rival {
	return redsyncOn("redsync", "go-redis pool as in its README; ", func(p place) (redsyncredis.Pool, func(), error) {
		c := p.goRedis()
		return goredis.NewPool(c), func() { _ = c.Close() }, nil
	})
}

func redsyncRueidisRival() rival {
	return redsyncOn("redsync-rueidis", "its rueidis pool, so all goroutines share pipelined connections; ",
		func(p place) (redsyncredis.Pool, func(), error) {
			c, end, err := p.rueidis()
			return redsyncrueidis.NewPool(rueidiscompat.NewAdapter(c)), end, err
		})
}

// redsyncOn is redsync with a pool for each of the servers.
func redsyncOn(name, settings string, open func(place) (redsyncredis.Pool, func(), error)) rival {
	return rival{Name: name, Settings: settings + redsyncSettings, Sends: redsyncSends, Several: true,
		Open: func(p place, lease time.Duration) (locker, error) {
			pools, end, err := openEach(p, open)
			return redsyncLocker(lease, end, pools...), err
		}}
}

func redsyncLocker(lease time.Duration, end func(), pools ...redsyncredis.Pool) locker {
	rs := redsync.New(pools...)
	take := func(lock func(*redsync.Mutex, context.Context) error) func(context.Context, string) (hold, error) {
		return func(ctx context.Context, name string) (hold, error) {
			m := rs.NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt32), redsync.WithRetryDelay(time.Millisecond))
			err := lock(m, ctx)
			var taken *redsync.ErrTaken
			if errors.As(err, &taken) {
				err = errBusy
			}
			return hold{Unlock: func() error {
				ok, err := m.Unlock()
				if err == nil && !ok {
					err = fmt.Errorf("redsync did not unlock %s", m.Name())
				}
				return err
			}}, err
		}
	}
	return locker{Lock: take((*redsync.Mutex).LockContext), TryLock: take((*redsync.Mutex).TryLockContext), Close: end}
}
