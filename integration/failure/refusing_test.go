// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A server that is busy with somebody's script refuses everything, SUNSUBSCRIBE too, which ends the
// process of a client of rueidis that sends it. Waits, releases and Close get through that.
func TestAServerThatIsBusyWithAScript(t *testing.T) {
	b := single(t)
	_, err := b.D.Nodes()[0].Do(b.Ctx, "CONFIG", "SET", "busy-reply-threshold", "20")
	require.NoError(t, err)
	c := b.Connect(b.D.ClientOption(), client.Config{Lease: testbed.Long})
	l := b.Take(c, "held")
	blocker := b.Take(b.open(testbed.Long), "waited for")
	closes := b.Connect(b.D.ClientOption(), client.Config{Lease: testbed.Long})
	b.Acquire(b.Ctx, closes, "waited for")
	b.Line(c, "waited for", 1)
	ctx, cancel := context.WithCancel(b.Ctx)
	waiting := b.Acquire(ctx, c, "waited for")
	b.Line(c, "waited for", 2)

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = b.D.Nodes()[0].Do(b.Ctx, "EVAL", `local t = redis.call('TIME')
while redis.call('TIME')[1] - t[1] < 2 do end`, "0") // its end is all that matters
	}()
	b.Eventually("the server is busy", func() bool {
		_, err := c.Inspect(b.Ctx, "held")
		return err != nil
	})
	_, err = c.TryAcquire(b.Ctx, "another")
	require.ErrorIs(t, err, client.ErrUnreachable)
	closes.Close()
	cancel()
	require.Error(t, testbed.Got(t, waiting).Err)
	soon, stop := context.WithTimeout(b.Ctx, 100*time.Millisecond)
	defer stop()
	require.ErrorIs(t, l.Release(soon), client.ErrUnreachable)
	testbed.Got(t, ended)
	b.Eventually("what was given up is given back", func() bool { return !b.Exists("held") })
	b.Release(blocker) // it goes to nobody that is gone
	b.Release(b.Locked(b.Acquire(b.Ctx, c, "waited for")).Lock)
	c.Close()
}
