// SPDX-License-Identifier: Apache-2.0

// Package jobs tests, in virtual time, what the client builds upon its locks: the Observer, Once, Lead
// and AcquireAll. AcquireAll under faults of servers and networks is the simulation's.
package jobs

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

var ctx = context.Background()

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(t *testing.T, s *locktest.Server)) {
	t.Helper()
	bed.Bubble(t, func(t *testing.T) { test(t, locktest.New(t)) })
}

// queued blocks until so many wait for a lock.
func queued(s *locktest.Server, name string, n int) {
	s.Await(name, func(i client.Info) bool { return i.Waiters == n })
}

// freed waits for what is given back in the background.
func freed(s *locktest.Server, name string) {
	s.Await(name, func(i client.Info) bool { return !i.Held && i.Waiters == 0 })
}

func nothing(context.Context) error { return nil }

// spend runs f, and fails the test unless that takes so long, and not much more.
func spend(t *testing.T, least, most time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	require.GreaterOrEqual(t, time.Since(began), least)
	require.Less(t, time.Since(began), most)
}

// holding takes a lock.
func holding(t *testing.T, c *client.Client, name string, opts ...client.Option) *client.Lock {
	t.Helper()
	l, err := c.Acquire(ctx, name, opts...)
	require.NoError(t, err)
	return l
}

// crowd is who works at the same time.
type crowd struct {
	mu     sync.Mutex
	slots  map[int]int64 // the token of who has it
	tokens map[int64]bool
	most   int
	wrong  []string
}

func (c *crowd) enter(l *client.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slots == nil {
		c.slots, c.tokens = map[int]int64{}, map[int64]bool{}
	}
	if c.slots[l.Slot()] != 0 || c.tokens[l.Fence()] || l.Slot() < 1 {
		c.wrong = append(c.wrong, fmt.Sprintf("slot %d, token %d beside %v", l.Slot(), l.Fence(), c.slots))
	}
	c.slots[l.Slot()], c.tokens[l.Fence()] = l.Fence(), true
	c.most = max(c.most, len(c.slots))
}

func (c *crowd) leave(l *client.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.slots, l.Slot())
}

// slots are those of a lock's holders, as the server says.
func slots(t *testing.T, c *client.Client, name string) (taken []int) {
	t.Helper()
	all, err := c.Holders(ctx, name)
	require.NoError(t, err)
	for _, h := range all {
		taken = append(taken, h.Slot)
	}
	return taken
}

// waits begins an Acquire, and returns when n wait.
func waits(s *locktest.Server, c *client.Client, name string, n int, opts ...client.Option) <-chan *client.Lock {
	got := make(chan *client.Lock, 1)
	go func() {
		defer close(got)
		if l, err := c.Acquire(ctx, name, opts...); err == nil {
			got <- l
		}
	}()
	queued(s, name, n)
	return got
}

// counted is an observer of the functions that a server runs.
func counted(t *testing.T, test func(t *testing.T, w *redis.World, n *redis.Node, calls func(function string) int)) {
	var mu sync.Mutex
	ran := map[string]int{}
	opt := redis.Options{Hooks: redis.Hooks{Call: func(c redis.Call) {
		mu.Lock()
		defer mu.Unlock()
		ran[c.Function]++
	}}}
	bed.In(t, opt, func(t *testing.T, w *redis.World) {
		test(t, w, bed.Loaded(t, w, "s:6379"), func(function string) int {
			mu.Lock()
			defer mu.Unlock()
			return ran[function]
		})
	})
}
