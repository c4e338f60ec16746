package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	redsyncrueidis "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

const redsyncSettings = "polls: WithRetryDelay 1 ms (default 50 to 250 ms), WithTries without limit (default 32), WithExpiry the lease; no renewal of its own"

// What redsync sends: SET to take it, a script to give it back.
var redsyncSends = []string{"set", "evalsha", "eval"}

func redsyncRival() rival {
	return rival{
		Name:     "redsync",
		Settings: "go-redis pool as in its README; " + redsyncSettings,
		Sends:    redsyncSends,
		Key:      sameKey,
		Open: func(_ context.Context, p place, u use) (locker, error) {
			c := p.goRedis()
			return redsyncLocker{redsync.New(goredis.NewPool(c)), u.Lease, func() { _ = c.Close() }}, nil
		},
	}
}

func redsyncRueidisRival() rival {
	return redsyncRueidisWith(place.option)
}

func redsyncRueidisTunedRival() rival {
	return redsyncRueidisWith(place.tuned).asTuned()
}

func redsyncRueidisWith(option func(place) rueidis.ClientOption) rival {
	return rival{
		Name:     "redsync-rueidis",
		Settings: "its rueidis pool, so all goroutines share pipelined connections; " + redsyncSettings,
		Sends:    redsyncSends,
		Key:      sameKey,
		Open: func(_ context.Context, p place, u use) (locker, error) {
			c, err := rueidis.NewClient(option(p))
			if err != nil {
				return nil, err
			}
			pool := redsyncrueidis.NewPool(rueidiscompat.NewAdapter(c))
			return redsyncLocker{redsync.New(pool), u.Lease, c.Close}, nil
		},
	}
}

type redsyncLocker struct {
	redsync *redsync.Redsync
	lease   time.Duration
	close   func()
}

func (r redsyncLocker) mutex(name string) *redsync.Mutex {
	return r.redsync.NewMutex(name, redsync.WithExpiry(r.lease), redsync.WithTries(math.MaxInt32),
		redsync.WithRetryDelay(time.Millisecond))
}

func redsyncHold(m *redsync.Mutex) hold {
	return hold{Unlock: func() error {
		ok, err := m.Unlock()
		if err == nil && !ok {
			err = fmt.Errorf("redsync did not unlock %s", m.Name())
		}
		return err
	}}
}

func (r redsyncLocker) Lock(ctx context.Context, name string) (hold, error) {
	m := r.mutex(name)
	if err := m.LockContext(ctx); err != nil {
		return hold{}, err
	}
	return redsyncHold(m), nil
}

func (r redsyncLocker) TryLock(ctx context.Context, name string) (hold, error) {
	m := r.mutex(name)
	err := m.TryLockContext(ctx)
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) {
		return hold{}, errBusy
	}
	if err != nil {
		return hold{}, err
	}
	return redsyncHold(m), nil
}

func (r redsyncLocker) Close() { r.close() }
