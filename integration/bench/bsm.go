package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
)

func bsmRival() rival {
	return rival{
		Name:     "bsm",
		Settings: "bsm/redislock on go-redis; polls: LinearBackoff(1 ms), under a context with a deadline (without one it gives up after the lease); no renewal of its own",
		Sends:    []string{"evalsha", "eval"},
		Key:      sameKey,
		Open: func(_ context.Context, p place, u use) (locker, error) {
			c := p.goRedis()
			return bsmLocker{redislock.New(c), u.Lease, func() { _ = c.Close() }}, nil
		},
	}
}

type bsmLocker struct {
	client *redislock.Client
	lease  time.Duration
	close  func()
}

func bsmHold(l *redislock.Lock) hold {
	return hold{Unlock: func() error { return l.Release(context.Background()) }}
}

func (b bsmLocker) Lock(ctx context.Context, name string) (hold, error) {
	retry := redislock.LinearBackoff(time.Millisecond)
	l, err := b.client.Obtain(ctx, name, b.lease, &redislock.Options{RetryStrategy: retry})
	if err != nil {
		return hold{}, err
	}
	return bsmHold(l), nil
}

func (b bsmLocker) TryLock(ctx context.Context, name string) (hold, error) {
	l, err := b.client.Obtain(ctx, name, b.lease, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return hold{}, errBusy
	}
	if err != nil {
		return hold{}, err
	}
	return bsmHold(l), nil
}

func (b bsmLocker) Close() { b.close() }
