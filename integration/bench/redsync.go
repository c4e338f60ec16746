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
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

const redsyncSettings = "polls: WithRetryDelay 1 ms (default 50 to 250 ms), WithTries without limit (default 32), " +
	"WithExpiry the lease; no renewal of its own"

// What redsync sends: SET to take it, a script to give it back.
var redsyncSends = []string{"set", "evalsha", "eval"}

func redsyncRival() rival {
	return rival{
		Name:     "redsync",
		Settings: "go-redis pool as in its README; " + redsyncSettings,
		Sends:    redsyncSends,
		Several:  true,
		Key:      sameKey,
		Open: func(p place, lease time.Duration) (locker, error) {
			each := []place{p}
			if p.Several {
				each = p.each()
			}
			var pools []redsyncredis.Pool
			var ends []func() error
			for _, one := range each {
				c := one.goRedis()
				pools, ends = append(pools, goredis.NewPool(c)), append(ends, c.Close)
			}
			return redsyncLocker(lease, func() {
				for _, end := range ends {
					_ = end()
				}
			}, pools...), nil
		},
	}
}

func redsyncRueidisRival() rival {
	return rival{
		Name:     "redsync-rueidis",
		Settings: "its rueidis pool, so all goroutines share pipelined connections; " + redsyncSettings,
		Sends:    redsyncSends,
		Key:      sameKey,
		Open: func(p place, lease time.Duration) (locker, error) {
			c, err := rueidis.NewClient(p.option())
			if err != nil {
				return locker{}, err
			}
			return redsyncLocker(lease, c.Close, redsyncrueidis.NewPool(rueidiscompat.NewAdapter(c))), nil
		},
	}
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
