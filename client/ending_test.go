// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// An Observer that blocks holds up no renewal, no end of a context, and no Close.
func TestAStuckObserverStopsNothing(t *testing.T) {
	stuck := make(chan struct{})
	defer close(stuck)
	const lease = 500 * time.Millisecond
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}}, client.Config{Lease: lease,
		Observer: &client.Observer{Renewed: func(client.Renewal) { <-stuck }}})
	require.NoError(t, err)
	name, began := t.Name(), time.Now()
	l, err := c.Acquire(background, name)
	require.NoError(t, err)
	eventually(t, "two leases later", func() bool { return time.Since(began) > 2*lease })
	require.NoError(t, l.Context().Err(), "it is renewed")
	r := raw(t)
	require.NoError(t, r.Do(background, r.B().Del().Key("lock:"+name).Build()).Error())
	<-l.Context().Done()
	require.ErrorIs(t, context.Cause(l.Context()), client.ErrTaken)
	began = time.Now()
	c.Close()
	require.Less(t, time.Since(began), 2*time.Second)
}

// A lock whose context has ended, and that nobody releases, is given back: others are not kept out for
// as long as the client lives.
func TestALockWhoseContextEndedIsGivenBack(t *testing.T) {
	c, other, name := opened(t), opened(t), t.Name()
	helper := func() *client.Lock {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		l, err := c.Acquire(ctx, name, client.WithLease(3*time.Second))
		require.NoError(t, err)
		return l
	}
	l := helper()
	require.ErrorIs(t, l.Context().Err(), context.Canceled)
	next, err := other.Acquire(background, name)
	require.NoError(t, err)
	require.Greater(t, next.Fence(), l.Fence())
	require.ErrorIs(t, l.Release(background), client.ErrAbandoned)
	require.NoError(t, next.Release(background))
}
