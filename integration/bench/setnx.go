package main

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// setnxRival is no lock: it neither waits nor checks who unlocks. It is the least that a Redis lock
// can cost.
func setnxRival() rival {
	return setnxBaseline(setnxName, "rueidis as it comes; not a lock, only the least that one costs", place.option)
}

// setnxTunedRival is the same with the connection settings of client.Open.
func setnxTunedRival() rival {
	return setnxBaseline(setnxTunedName, tunedSettings, place.tuned)
}

const (
	setnxName      = "SET NX PX + DEL"
	setnxTunedName = "SET NX PX + DEL (tuned)"
)

func setnxBaseline(name, settings string, option func(place) rueidis.ClientOption) rival {
	return rival{
		Name:     name,
		Settings: settings,
		Sends:    []string{"set", "del"},
		Baseline: true,
		Key:      sameKey,
		Open: func(_ context.Context, p place, u use) (locker, error) {
			c, err := rueidis.NewClient(option(p))
			if err != nil {
				return nil, err
			}
			return setnxLocker{c, u.Lease.Milliseconds()}, nil
		},
	}
}

type setnxLocker struct {
	redis rueidis.Client
	lease int64
}

func (s setnxLocker) Lock(ctx context.Context, name string) (hold, error) {
	return s.TryLock(ctx, name)
}

func (s setnxLocker) TryLock(ctx context.Context, name string) (hold, error) {
	token := strconv.FormatInt(time.Now().UnixNano(), 36)
	err := s.redis.Do(ctx, s.redis.B().Set().Key(name).Value(token).Nx().PxMilliseconds(s.lease).Build()).Error()
	if rueidis.IsRedisNil(err) {
		return hold{}, errBusy
	}
	if err != nil {
		return hold{}, err
	}
	return hold{Unlock: func() error {
		return s.redis.Do(context.Background(), s.redis.B().Del().Key(name).Build()).Error()
	}}, nil
}

func (s setnxLocker) Close() { s.redis.Close() }
