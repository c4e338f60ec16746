// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// wish is for a lock that several may have: at most limit of them; or, if that is 0, all that share it,
// or one alone.
type wish struct {
	name, owner string
	limit       int
	alone       bool
	place       *string // which key of several it is
}

// scheme is a way to grant wishes, of which nobody is told in person.
type scheme struct {
	take func(ctx context.Context, c rueidis.Client, w wish) (taken bool, err error)
	give func(ctx context.Context, c rueidis.Client, w wish) error
	// listen returns what a refused one waits for before it tries again
	listen func(c rueidis.Client) func() <-chan time.Time
}

// The scripts do what those of Redisson do for an RPermitExpirableSemaphore and an RReadWriteLock, as
// far as it matters without re-entry.
var (
	permitTake = rueidis.NewLuaScript(`for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], 0, ARGV[1])) do
  redis.call('ZREM', KEYS[2], id)
  redis.call('INCR', KEYS[1])
end
local free = redis.call('GET', KEYS[1])
if not free then redis.call('SET', KEYS[1], ARGV[4]); free = ARGV[4] end
if tonumber(free) < 1 then return 0 end
redis.call('DECR', KEYS[1])
redis.call('ZADD', KEYS[2], ARGV[2], ARGV[3])
return 1`)
	permitGive = rueidis.NewLuaScript(`if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('PUBLISH', 'released', redis.call('INCR', KEYS[1]))
return 1`)
	shareTake = rueidis.NewLuaScript(`local mode = redis.call('HGET', KEYS[1], 'mode')
if mode and (mode == 'write' or ARGV[3] == 'write') then return 0 end
redis.call('HSET', KEYS[1], 'mode', ARGV[3])
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
redis.call('SET', KEYS[1] .. ':' .. ARGV[2], 1, 'PX', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1`)
	shareGive = rueidis.NewLuaScript(`if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('DEL', KEYS[1] .. ':' .. ARGV[1])
if redis.call('HLEN', KEYS[1]) > 1 then return 1 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', 'released', 1)
return 1`)
	zsetTake = rueidis.NewLuaScript(`redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return 0 end
return redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])`)
)

func redissonRival() rival {
	return crowd("Redisson's scheme", "its permits and its read-write lock as Lua by rueidis; a release is published, and wakes a waiter of each client",
		[]string{"evalsha", "subscribe"}, true, scheme{
			take: func(ctx context.Context, c rueidis.Client, w wish) (bool, error) {
				if w.limit > 0 {
					return yes(permitTake.Exec(ctx, c, []string{w.name, w.name + ":until"}, append(times(), w.owner, strconv.Itoa(w.limit))))
				}
				mode := map[bool]string{false: "read", true: "write"}[w.alone]
				return yes(shareTake.Exec(ctx, c, []string{w.name}, []string{strconv.FormatInt(lease.Milliseconds(), 10), w.owner, mode}))
			},
			give: func(ctx context.Context, c rueidis.Client, w wish) error {
				if w.limit > 0 {
					return permitGive.Exec(ctx, c, []string{w.name, w.name + ":until"}, []string{w.owner}).Error()
				}
				return shareGive.Exec(ctx, c, []string{w.name}, []string{w.owner}).Error()
			},
			listen: func(c rueidis.Client) func() <-chan time.Time {
				heard, subscribed := make(chan time.Time, 1), make(chan struct{})
				ctx := rueidis.WithOnSubscriptionHook(background, func(rueidis.PubSubSubscription) { close(subscribed) })
				go func() {
					_ = c.Receive(ctx, c.B().Subscribe().Channel("released").Build(), func(rueidis.PubSubMessage) {
						select {
						case heard <- time.Now():
						default:
						}
					})
				}()
				<-subscribed
				return func() <-chan time.Time { return heard }
			},
		})
}

func zsetRival() rival {
	return crowd("sorted set, polled", "ZREMRANGEBYSCORE, ZCARD and ZADD in a script, tried each ms, by rueidis; ZREM gives back", []string{"evalsha", "zrem"}, false, scheme{
		take: func(ctx context.Context, c rueidis.Client, w wish) (bool, error) {
			return yes(zsetTake.Exec(ctx, c, []string{w.name}, append(times(), w.owner, strconv.Itoa(w.limit))))
		},
		give: func(ctx context.Context, c rueidis.Client, w wish) error {
			return c.Do(ctx, c.B().Zrem().Key(w.name).Member(w.owner).Build()).Error()
		},
		listen: polled,
	})
}

func placesRival() rival {
	var turn atomic.Int64
	return crowd("SET NX on a key of ten, polled", "a key for each place, the next one tried each ms, by rueidis; anybody's DEL gives back", []string{"set", "del"}, false, scheme{
		take: func(ctx context.Context, c rueidis.Client, w wish) (bool, error) {
			*w.place = fmt.Sprintf("%s:%d", w.name, turn.Add(1)%int64(w.limit))
			err := c.Do(ctx, c.B().Set().Key(*w.place).Value(w.owner).Nx().Px(lease).Build()).Error()
			if rueidis.IsRedisNil(err) {
				return false, nil
			}
			return err == nil, err
		},
		give: func(ctx context.Context, c rueidis.Client, w wish) error {
			return c.Do(ctx, c.B().Del().Key(*w.place).Build()).Error()
		},
		listen: polled,
	})
}

// polled is a try each millisecond.
func polled(rueidis.Client) func() <-chan time.Time {
	return func() <-chan time.Time { return time.After(time.Millisecond) }
}

// times are now and the end of a lease, by the client's clock.
func times() []string {
	now := time.Now().UnixMilli()
	return []string{strconv.FormatInt(now, 10), strconv.FormatInt(now+lease.Milliseconds(), 10)}
}

func yes(r rueidis.RedisResult) (bool, error) {
	n, err := r.AsInt64()
	return n == 1, err
}

var wishes atomic.Int64

func crowd(name, settings string, sends []string, shares bool, s scheme) rival {
	return rival{Name: name, Settings: settings, Sends: sends, Limits: true, Shares: shares,
		Open: func(p place, _ time.Duration) (locker, error) {
			c, err := rueidis.NewClient(p.option())
			if err != nil {
				return locker{}, err
			}
			again := s.listen(c)
			beside := func(ctx context.Context, w wish) (hold, error) {
				w.owner, w.place = strconv.FormatInt(wishes.Add(1), 36), new(string)
				for {
					taken, err := s.take(ctx, c, w)
					if taken || err != nil {
						return hold{Unlock: func() error { return s.give(background, c, w) }}, err
					}
					select {
					case <-again():
					case <-ctx.Done():
						return hold{}, ctx.Err()
					}
				}
			}
			return locker{Beside: beside, Close: c.Close}, nil
		}}
}
