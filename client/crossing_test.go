// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/functions"
)

// crossed is a Backend with three calls that wait: the first release until the second acquisition is done at
// the server, that one's answer until the test says so, and the first renewal.
type crossed struct {
	fcall.Backend
	mu    sync.Mutex
	calls map[fcall.Verb]int

	releasing, acquiring, answer, renewing, renew chan struct{}
}

func (c *crossed) Do(ctx context.Context, call fcall.Call) (r fcall.Reply, err error) {
	c.mu.Lock()
	c.calls[call.Verb]++
	n := c.calls[call.Verb]
	c.mu.Unlock()
	switch {
	case call.Verb == fcall.Release && n == 1:
		close(c.releasing)
		<-c.acquiring
	case call.Verb == fcall.Renew && n == 1:
		close(c.renewing)
		<-c.renew
	}
	r, err = c.Backend.Do(ctx, call)
	if call.Verb == fcall.Acquire && n == 2 {
		close(c.acquiring)
		<-c.answer
	}
	return r, err
}

// An acquisition that the server did before a ReleaseOwner, and whose answer comes while that looks at other
// holds of the owner, is no lock.
func TestAReleaseOfAnOwnerCrossesAnAcquisition(t *testing.T) {
	c := opened(t)
	b := &crossed{calls: map[fcall.Verb]int{}, releasing: make(chan struct{}), acquiring: make(chan struct{}),
		answer: make(chan struct{}), renewing: make(chan struct{}), renew: make(chan struct{})}
	c.Through(func(own fcall.Backend) fcall.Backend {
		b.Backend = own
		return b
	})
	_, err := c.Acquire(t.Context(), t.Name(), client.WithOwner("o"))
	require.NoError(t, err)

	gone := make(chan error, 1)
	go func() { gone <- c.ReleaseOwner(t.Context(), t.Name(), "o") }()
	<-b.releasing
	got := make(chan *client.Lock, 1)
	go func() {
		l, err := c.Acquire(t.Context(), t.Name(), client.WithOwner("o"))
		require.NoError(t, err)
		got <- l
	}()
	<-b.renewing
	close(b.answer)
	l := <-got
	info, err := c.Inspect(t.Context(), t.Name())
	require.NoError(t, err)
	require.True(t, info.Held)
	require.Equal(t, info.Fence, l.Fence())
	close(b.renew)
	require.NoError(t, <-gone)
	require.NoError(t, l.Release(t.Context()))
}

// A hold whose owner string has the lock alone now is lost, and no argument is wrong.
func TestAHoldThatIsALockNow(t *testing.T) {
	c := opened(t)
	l, err := c.Acquire(t.Context(), t.Name(), client.WithOwner("o"))
	require.NoError(t, err)
	redis, key := c.Redis(), "lock:"+t.Name()
	require.NoError(t, redis.Do(t.Context(), redis.B().Del().Key(key).Build()).Error())
	require.NoError(t, redis.Do(t.Context(), redis.B().Fcall().Function(functions.Acquire).Numkeys(1).Key(key).Arg("o", "30000").Build()).Error())
	require.ErrorIs(t, l.Release(t.Context()), client.ErrTaken)
}
