package several

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// line is the server that has the line of a lock, and the others.
func (b *bed) lineOf(name string) (line *redis.Node, others []*redis.Node) {
	at := b.line(name)
	for i, n := range b.nodes {
		if i != at {
			others = append(others, n)
		}
	}
	return b.nodes[at], others
}

// Who loses its turn between the votes and the second round has votes that the next one needs.
func TestALostTurnGivesItsVotesBack(t *testing.T) {
	on(t, 5, func(b *bed) {
		line, others := b.lineOf("x")
		for _, n := range others[2:] {
			n.Kill()
		}
		first := b.client(client.Config{})
		defer first.Close()
		l, err := first.Acquire(b.Context(), "x")
		require.NoError(b, err)
		var got [2]chan *client.Lock
		for i := range got {
			c := b.client(client.Config{})
			defer c.Close()
			got[i] = make(chan *client.Lock, 1)
			go func() {
				m, err := c.Acquire(b.Context(), "x")
				assert.NoError(b, err)
				got[i] <- m
			}()
			time.Sleep(500 * time.Millisecond)
		}
		slow := redis.Path{Host: "h2", Node: others[0]} // of the first in line
		b.world.Stall(slow, redis.ToServer)
		require.NoError(b, l.Release(b.Context()))
		time.Sleep(100 * time.Millisecond)
		require.NotEmpty(b, line.Do("FCALL", "holdfast_break", "1", "lock:x", "a test"))
		time.Sleep(10 * time.Millisecond)
		b.world.Resume(slow)
		began := time.Now()
		for _, c := range []chan *client.Lock{got[1], got[0]} {
			require.NoError(b, (<-c).Release(b.Context()))
		}
		assert.Less(b, time.Since(began), lease/2)
	})
}
