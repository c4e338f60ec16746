package redis_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// A server that refuses renewals from the Release on, but not until its lease is over, does not let
// others in before MinHold is over.
func TestMinHoldOutlastsAnOutage(t *testing.T) {
	const minHold = 2 * time.Minute
	lag := func(t *testing.T, handedOver bool, outage time.Duration) {
		bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
			n := w.Node("a:1")
			load(t, n)
			c, other := open(t, w, "client", "a:1"), open(t, w, "other", "a:1")
			defer c.Close()
			defer other.Close()
			var l *client.Lock
			if handedOver {
				before := must(other.Acquire(ctx, "x"))
				got := make(chan *client.Lock)
				go func() { got <- must(c.Acquire(ctx, "x", client.WithMinHold(minHold))) }()
				time.Sleep(time.Second)
				_ = before.Release(ctx)
				l = <-got
			} else {
				l = must(c.Acquire(ctx, "x", client.WithMinHold(minHold)))
				time.Sleep(10100 * time.Millisecond) // renewed just now
			}
			had := time.Now()
			if !handedOver {
				had = had.Add(-10100 * time.Millisecond)
			}
			n.Refuse(func(cmd []string) redis.Error {
				if slices.Contains(cmd, functions.Renew) {
					return "BUSY a script is running"
				}
				return ""
			})
			if err := l.Release(ctx); err == nil {
				t.Error("the release did not notice the outage")
			}
			time.AfterFunc(outage, func() { n.Refuse(nil) })
			next := must(other.Acquire(ctx, "x"))
			if kept := time.Since(had); kept < minHold || kept > minHold+time.Second {
				t.Errorf("an outage of %v, handed over: %v: another had the lock after %v", outage, handedOver, kept)
			}
			_ = next.Release(ctx)
		})
	}
	for _, seconds := range []int{1, 5, 15, 21, 24, 27, 29} {
		t.Run(fmt.Sprint(seconds, " s"), func(t *testing.T) { lag(t, false, time.Duration(seconds)*time.Second) })
	}
	t.Run("handed over", func(t *testing.T) { lag(t, true, 100*time.Millisecond) })
}

// With replicas each call has a connection of its own. So a renewal can be done after the Release, and
// its shorter lease counts.
func TestMinHoldOutlastsRenewalsThatCrossTheRelease(t *testing.T) {
	const minHold = 2 * time.Minute
	crossings := map[string]func(w *redis.World, n *redis.Node, l *client.Lock) <-chan error{
		"one by hand, whose answer nobody waits for": func(w *redis.World, _ *redis.Node, l *client.Lock) <-chan error {
			time.Sleep(time.Second)
			renewed := make(chan error, 1)
			w.Delay(redis.Path{Host: "client"}, 500*time.Millisecond)
			go func() {
				short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				defer cancel()
				renewed <- l.Renew(short)
			}()
			time.Sleep(time.Millisecond)
			w.Delay(redis.Path{Host: "client"}, 0)
			return renewed
		},
		"one that is done last, and answered first": func(w *redis.World, n *redis.Node, _ *client.Lock) <-chan error {
			path := redis.Path{Host: "client", Node: n}
			time.Sleep(9900 * time.Millisecond)
			w.Delay(path, 200*time.Millisecond)
			time.Sleep(150 * time.Millisecond) // the renewal is on its way
			w.Delay(path, 0)
			n.Refuse(func(cmd []string) redis.Error {
				if slices.Contains(cmd, functions.Renew) && !slices.Contains(cmd, "30000") { // that of the Release
					go func() {
						w.Delay(path, time.Second)
						time.Sleep(20 * time.Millisecond)
						w.Delay(path, 0)
					}()
				}
				return ""
			})
			renewed := make(chan error)
			close(renewed)
			return renewed
		},
	}
	for name, cross := range crossings {
		t.Run(name, func(t *testing.T) {
			bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
				n := w.Node("a:1")
				load(t, n)
				w.Replica("r:1", n)
				time.Sleep(time.Second)
				c, other := open(t, w, "client", "a:1"), open(t, w, "other", "a:1")
				defer c.Close()
				defer other.Close()
				l := must(c.Acquire(ctx, "x", client.WithReplicas(1, time.Second), client.WithMinHold(minHold)))
				had := time.Now()
				renewed := cross(w, n, l)
				_ = l.Release(ctx)
				<-renewed
				next := must(other.Acquire(ctx, "x"))
				if kept := time.Since(had); kept < minHold {
					t.Errorf("another had the lock after %v", kept)
				}
				_ = next.Release(ctx)
			})
		})
	}
}
