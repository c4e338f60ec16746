// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// floorSource is loaded beside the library of Holdfast.
//
//go:embed floor.lua
var floorSource string

// Neither of these is a lock to use. They show how much of a distance is the server's.
func floorRival() rival {
	return bare("bare functions", "two functions that mint a token and do nothing else (floor.lua), by rueidis alone",
		[]string{"fcall"},
		func(c rueidis.Client, name, owner, ttl string) (taken bool, err error) {
			token, err := c.Do(background, c.B().Fcall().Function("bench_take").Numkeys(1).Key(name).Arg(owner, ttl).Build()).AsInt64()
			return token > 0, err
		},
		func(c rueidis.Client, name, owner string) rueidis.Completed {
			return c.B().Fcall().Function("bench_give").Numkeys(1).Key(name).Arg(owner).Build()
		})
}

func setnxRival() rival {
	return bare("SET NX PX + DEL", "by rueidis alone; anybody's DEL unlocks it", []string{"set", "del"},
		func(c rueidis.Client, name, owner, ttl string) (taken bool, err error) {
			err = c.Do(background, c.B().Arbitrary("SET").Keys(name).Args(owner, "NX", "PX", ttl).Build()).Error()
			if rueidis.IsRedisNil(err) {
				return false, nil
			}
			return err == nil, err
		},
		func(c rueidis.Client, name, _ string) rueidis.Completed { return c.B().Del().Key(name).Build() })
}

var background = context.Background()

// bare is two commands with nothing around them: nobody waits, and nobody can give up.
func bare(name, settings string, sends []string, take func(c rueidis.Client, name, owner, ttl string) (bool, error),
	give func(c rueidis.Client, name, owner string) rueidis.Completed) rival {
	return rival{Name: name, Settings: settings, Sends: sends, Baseline: true,
		Open: func(p place, lease time.Duration) (locker, error) {
			c, err := rueidis.NewClient(p.option())
			if err != nil {
				return locker{}, err
			}
			var owners atomic.Int64
			ttl := strconv.FormatInt(lease.Milliseconds(), 10)
			lock := func(_ context.Context, name string) (hold, error) {
				owner := strconv.FormatInt(owners.Add(1), 36)
				taken, err := take(c, name, owner, ttl)
				if err == nil && !taken {
					err = errBusy
				}
				return hold{Unlock: func() error { return c.Do(background, give(c, name, owner)).Error() }}, err
			}
			return locker{Lock: lock, TryLock: lock, Close: c.Close}, nil
		}}
}
