// SPDX-License-Identifier: Apache-2.0

package quorum_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// The servers are new, so nobody gets a lock for as long as the guard.
var short = client.Config{AutoLoad: true, Lease: 4 * time.Second, Guard: 4 * time.Second}

func TestOpen(t *testing.T) {
	d := server.Several(t, 3)
	clients := make([]*client.Client, 2)
	for i := range clients {
		c, err := quorum.Open(d.ClientOptions(), short)
		require.NoError(t, err)
		t.Cleanup(c.Close)
		clients[i] = c
	}
	_, err := clients[0].TryAcquire(t.Context(), "x")
	require.ErrorIs(t, err, client.ErrBusy, "no server votes yet")
	l, err := clients[0].Acquire(t.Context(), "x")
	require.NoError(t, err)
	before := l.Fence()
	require.NoError(t, d.Nodes()[1].Kill())
	_, err = clients[1].TryAcquire(t.Context(), "x")
	require.ErrorIs(t, err, client.ErrBusy)
	if err := l.Release(t.Context()); err != nil { // the third connection is not made yet: the lease ends the lock
		require.ErrorIs(t, err, client.ErrUnreachable)
	}

	var inside sync.Mutex
	var all sync.WaitGroup
	for _, c := range clients {
		for range 4 {
			all.Go(func() {
				for range 5 {
					require.NoError(t, c.Do(t.Context(), "x", func(ctx context.Context) error {
						if !inside.TryLock() {
							return errors.New("two have the lock")
						}
						defer inside.Unlock()
						return ctx.Err()
					}))
				}
			})
		}
	}
	all.Wait()
	l, err = clients[1].Acquire(t.Context(), "x")
	require.NoError(t, err)
	require.Greater(t, l.Fence(), before)
	require.NoError(t, d.Nodes()[2].Kill())
	<-l.Context().Done()
	require.ErrorIs(t, context.Cause(l.Context()), client.ErrExpired)
}

func TestBadQuorums(t *testing.T) {
	d := server.Several(t, 3)
	options := d.ClientOptions()
	_, err := quorum.Open(options[:2], short)
	require.ErrorIs(t, err, client.ErrArgument)
	require.ErrorContains(t, err, "an odd number")
	_, err = quorum.Open([]rueidis.ClientOption{options[0], options[1], options[0]}, short)
	require.ErrorContains(t, err, "options[2] has")
	names := []rueidis.ClientOption{options[0], options[0], options[0]}
	for i, host := range []string{"127.0.0.1", "localhost", "LOCALHOST"} {
		names[i].InitAddress = []string{host + options[0].InitAddress[0][len("127.0.0.1"):]}
	}
	_, err = quorum.Open(names, short)
	require.ErrorContains(t, err, "two of the servers are one")
	for _, wrong := range []client.Config{{Replicas: 1}, {Guard: -1}, {Lease: 10 * time.Second, Guard: 5 * time.Second}} {
		_, err = quorum.Open(options, wrong)
		require.ErrorIs(t, err, client.ErrArgument)
	}
	for _, n := range []int{0, 1, 2, 4, 6, 8, 11} {
		_, err = quorum.Open(make([]rueidis.ClientOption, n), short)
		require.ErrorIs(t, err, client.ErrArgument, n)
	}
	_, err = quorum.Open(append(options[:2:2], rueidis.ClientOption{}), short)
	require.ErrorIs(t, err, client.ErrArgument, "no address")
	_, err = quorum.Open(append(options[:2:2], rueidis.ClientOption{InitAddress: []string{"redis://127.0.0.1:1"}}), short)
	require.ErrorIs(t, err, client.ErrArgument, "a URL is none")
	one, err := rueidis.NewClient(options[0])
	require.NoError(t, err)
	defer one.Close()
	_, err = quorum.New([]rueidis.Client{one, one, one}, short)
	require.ErrorIs(t, err, client.ErrArgument, "the same client")
	for i, nobody := range []string{"127.0.0.1:1", "127.0.0.1:2"} {
		options[i].InitAddress = []string{nobody}
	}
	_, err = quorum.Open(options, short)
	require.ErrorIs(t, err, client.ErrUnreachable)
	_, err = quorum.New([]rueidis.Client{nil, nil, nil}, short)
	require.ErrorIs(t, err, client.ErrArgument)
}

// A replica of another primary has no vote. It is told, and not counted.
func TestAReplicaIsNoServer(t *testing.T) {
	options := server.Several(t, 3).ClientOptions()
	for i := range 2 {
		options[i].InitAddress = []string{server.Replicated(t, 1, server.Owned()).Nodes()[1].Addr}
	}
	_, err := quorum.Open(options, short)
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.ErrorContains(t, err, "it is a replica")
}

// Two names of sentinels can lead to one server: it would have two votes, a majority alone.
func TestTwoNamesOfSentinelsForOneServer(t *testing.T) {
	d := server.Sentinel(t, server.Owned())
	port := d.Nodes()[0].Addr[strings.LastIndex(d.Nodes()[0].Addr, ":")+1:]
	for _, s := range d.Sentinels() {
		_, err := s.Do(t.Context(), "SENTINEL", "MONITOR", "alias", "127.0.0.1", port, "2")
		require.NoError(t, err)
	}
	options := server.Several(t, 3).ClientOptions()
	options[0], options[1] = d.ClientOption(), d.ClientOption()
	options[1].Sentinel.MasterSet = "alias"
	_, err := quorum.Open(options, short)
	require.ErrorIs(t, err, client.ErrArgument)
}
