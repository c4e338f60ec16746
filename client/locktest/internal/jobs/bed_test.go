// SPDX-License-Identifier: Apache-2.0

// Package jobs tests, in virtual time, what the client builds upon its locks: the Observer, Once, Lead
// and AcquireAll. AcquireAll under faults of servers and networks is the simulation's.
package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
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
