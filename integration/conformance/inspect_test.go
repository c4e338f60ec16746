// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A Try that asks the server is never refused for a lock that another has released before.
func TestAFreshAnswerIsTheServers(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		holder, c := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		for range 25 {
			l := e.Take(holder, "a")
			for range 3 { // from memory, by now
				_, err := c.TryAcquire(e.Ctx, "a")
				only(t, client.ErrBusy, err)
			}
			before := e.calls()
			_, err := c.TryAcquire(e.Ctx, "a", client.WithFreshAnswer())
			only(t, client.ErrBusy, err)
			require.Positive(t, e.calls()-before) // on a busy machine the holder looks meanwhile
			e.Release(l)
			e.Release(e.Take(c, "a", client.WithFreshAnswer()))
		}
	})
}

// Client-side caching goes on after a restart of the server, through refused connections.
func TestCachingSurvivesARestart(t *testing.T) {
	e := own(t)
	c, holder := e.open(client.Config{}), e.open(client.Config{Lease: testbed.Long})
	cached := func() bool {
		for range 5 { // the connection may have to be made, and the key to be noticed
			_, _ = c.TryAcquire(e.Ctx, "a")
		}
		before := e.calls()
		for range 20 {
			_, err := c.TryAcquire(e.Ctx, "a")
			if !errors.Is(err, client.ErrBusy) {
				return false
			}
		}
		return e.calls() == before
	}
	e.Take(holder, "a")
	e.Eventually("from memory", cached)
	require.NoError(t, e.D.Nodes()[0].Kill())
	for refused := 0; refused < 5; {
		if _, err := c.TryAcquire(e.Ctx, "a"); errors.Is(err, client.ErrUnreachable) {
			refused++
		}
	}
	require.NoError(t, e.D.Nodes()[0].Restart())
	e.D.Load(t)
	e.Eventually("held again", func() bool { _, err := holder.TryAcquire(e.Ctx, "a"); return err == nil })
	e.Eventually("from memory again", cached)
}
