package several

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// A majority is lost under a lock that another waits for. Servers that were away remember, and those that
// were restarted do not, although they have their data: they let nobody in before the guard is over.
func TestAMajorityComesBack(t *testing.T) {
	// What was left at the servers is undone within a second, and a waiter asks within 1.5 s after that.
	const soon = 4 * time.Second
	for name, c := range map[string]struct {
		lose, back func(n *redis.Node)
		pause      time.Duration
	}{
		"with its memory": {(*redis.Node).Pause, (*redis.Node).Continue, 0},
		"with its data":   {(*redis.Node).Kill, func(n *redis.Node) { n.Restart(redis.Everything) }, lease},
	} {
		t.Run(name, func(t *testing.T) {
			on(t, 5, func(b *bed) {
				holder, waiter, other := b.client(client.Config{}), b.client(client.Config{}), b.client(client.Config{})
				for _, c := range []*client.Client{holder, waiter, other} {
					defer c.Close()
				}
				l := b.hold(holder, "x")
				got := make(chan *client.Lock, 1)
				go func() {
					defer close(got)
					for b.Context().Err() == nil {
						if m, err := waiter.Acquire(b.Context(), "x"); err == nil {
							got <- m
							return
						} else if !assert.ErrorIs(b, err, client.ErrUnreachable) {
							return
						}
						time.Sleep(50 * time.Millisecond)
					}
				}()
				time.Sleep(time.Second)
				for _, n := range b.nodes[:3] {
					c.lose(n)
				}
				_, err := other.TryAcquire(b.Context(), "free")
				assert.ErrorIs(b, err, client.ErrUnreachable)
				time.Sleep(2 * lease)
				assert.ErrorIs(b, context.Cause(l.Context()), client.ErrExpired)
				assert.Empty(b, got)
				for _, n := range b.nodes[:3] {
					c.back(n)
				}
				back := time.Now()
				m := <-got
				require.NotNil(b, m)
				assert.GreaterOrEqual(b, time.Since(back), c.pause)
				assert.Less(b, time.Since(back), c.pause+soon)
				assert.Greater(b, m.Fence(), l.Fence())
				assert.NoError(b, m.Release(b.Context()))
			})
		})
	}
}
