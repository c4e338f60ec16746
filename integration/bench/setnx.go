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
	return rival{
		Name:     "SET NX PX + DEL",
		Settings: "rueidis as it comes; not a lock, only the least that one costs",
		Sends:    []string{"set", "del"},
		Baseline: true,
		Key:      sameKey,
		Open: func(p place, lease time.Duration) (locker, error) {
			c, err := rueidis.NewClient(p.option())
			if err != nil {
				return locker{}, err
			}
			take := func(ctx context.Context, name string) (hold, error) {
				token := strconv.FormatInt(time.Now().UnixNano(), 36)
				err := c.Do(ctx, c.B().Set().Key(name).Value(token).Nx().PxMilliseconds(lease.Milliseconds()).Build()).Error()
				if rueidis.IsRedisNil(err) {
					err = errBusy
				}
				return hold{Unlock: func() error {
					return c.Do(context.Background(), c.B().Del().Key(name).Build()).Error()
				}}, err
			}
			return locker{Lock: take, TryLock: take, Close: c.Close}, nil
		},
	}
}
