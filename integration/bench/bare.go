// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
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
		func(c rueidis.Client, name, owner, ttl string) error {
			token, err := c.Do(background, c.B().Fcall().Function("bench_take").Numkeys(1).Key(name).Arg(owner, ttl).Build()).AsInt64()
			if err == nil && token == 0 {
				return errBusy
			}
			return err
		},
		func(c rueidis.Client, name, owner string) rueidis.Completed {
			return c.B().Fcall().Function("bench_give").Numkeys(1).Key(name).Arg(owner).Build()
		})
}

func setnxRival() rival {
	return bare("SET NX PX + DEL", "by rueidis alone; anybody's DEL unlocks it", []string{"set", "del"},
		func(c rueidis.Client, name, owner, ttl string) error {
			err := c.Do(background, c.B().Arbitrary("SET").Keys(name).Args(owner, "NX", "PX", ttl).Build()).Error()
			if rueidis.IsRedisNil(err) {
				return errBusy
			}
			return err
		},
		func(c rueidis.Client, name, _ string) rueidis.Completed { return c.B().Del().Key(name).Build() })
}

var background = context.Background()

// bare is two commands with nothing around them: nobody waits, and nobody can give up. Several servers get
// them at the same time, and all answer.
func bare(name, settings string, sends []string, take func(c rueidis.Client, name, owner, ttl string) error,
	give func(c rueidis.Client, name, owner string) rueidis.Completed) rival {
	return rival{Name: name, Settings: settings, Sends: sends, Baseline: true,
		Open: func(p place, lease time.Duration) (locker, error) {
			clients, end, err := openEach(p, place.rueidis)
			all := func(do func(rueidis.Client) error) error {
				errs := make(chan error, len(clients))
				for _, c := range clients[1:] {
					go func() { errs <- do(c) }()
				}
				err := do(clients[0])
				for range clients[1:] {
					err = cmp.Or(<-errs, err)
				}
				return err
			}
			var owners atomic.Int64
			ttl := strconv.FormatInt(lease.Milliseconds(), 10)
			lock := func(_ context.Context, name string) (hold, error) {
				owner := strconv.FormatInt(owners.Add(1), 36)
				unlock := func(c rueidis.Client) error { return c.Do(background, give(c, name, owner)).Error() }
				return hold{Unlock: func() error { return all(unlock) }}, all(func(c rueidis.Client) error { return take(c, name, owner, ttl) })
			}
			return locker{Lock: lock, TryLock: lock, Close: end}, err
		}}
}
