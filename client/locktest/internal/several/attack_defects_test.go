package several

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/client/quorum"
)

// waiting lets a client wait for x, and returns what comes of it.
func (b *bed) waiting(c *client.Client, most time.Duration) <-chan error {
	got := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(b.Context(), most)
		defer cancel()
		l, err := c.Acquire(ctx, "x", client.WithLockContext(b.Context()))
		if err == nil {
			err = l.Release(b.Context())
		}
		got <- err
	}()
	return got
}

// "All but a minority may be lost at any time. A lock then outlives the loss of a minority": the
// line's server comes back, and half a minute later another one is lost: one of three.
func TestAttackMendingWithAWaiter(t *testing.T) {
	on(t, 3, func(b *bed) {
		line := b.line("x")
		c, w := b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer w.Close()
		l, err := c.Acquire(b.Context(), "x")
		require.NoError(b, err)
		got := b.waiting(w, 10*time.Minute)
		time.Sleep(2 * time.Second)
		b.nodes[line].Restart(redis.Nothing)
		b.load(b.nodes[line])
		time.Sleep(4 * lease)
		if n := b.votes("x", l.Owner()); n != 3 {
			b.Errorf("%d of 3 have the lock, four leases after the last one was lost", n)
		}
		b.nodes[(line+1)%3].Kill()
		time.Sleep(lease)
		assert.NoError(b, l.Context().Err(), "%v", context.Cause(l.Context()))
		assert.NoError(b, l.Release(b.Context()))
		assert.NoError(b, <-got)
	})
}

// All clocks are right. A waiter has its turn when the lock is released, and not ErrInvalid: "the
// program or the deployment is wrong".
func TestAttackClocksThatAreRight(t *testing.T) {
	for _, held := range []time.Duration{30 * time.Second, 45 * time.Second, time.Minute, 90 * time.Second, 5 * time.Minute} {
		t.Run(held.String(), func(t *testing.T) {
			on(t, 3, func(b *bed) {
				line := b.line("x")
				c, w := b.client(client.Config{}), b.client(client.Config{})
				defer c.Close()
				defer w.Close()
				l, err := c.Acquire(b.Context(), "x")
				require.NoError(b, err)
				got := b.waiting(w, 10*time.Minute)
				time.Sleep(2 * time.Second)
				b.nodes[line].Restart(redis.Nothing)
				b.load(b.nodes[line])
				time.Sleep(held)
				require.NoError(b, l.Release(b.Context()))
				assert.NoError(b, <-got)
			})
		})
	}
}

// TryAcquire "takes the lock if it is free"; one of many that try at once has it, as on one server.
func TestAttackNobodyHasAFreeLock(t *testing.T) {
	on(t, 5, func(b *bed) {
		var all []*client.Client
		for range 10 {
			c := b.client(client.Config{})
			defer c.Close()
			all = append(all, c)
		}
		none := 0
		for range 20 {
			var wg sync.WaitGroup
			var mu sync.Mutex
			won := 0
			for _, c := range all {
				wg.Go(func() {
					l, err := c.TryAcquire(b.Context(), "x", client.WithFreshAnswer(), client.WithMinHold(time.Second))
					if err == nil {
						assert.NoError(b, l.Release(b.Context()))
						mu.Lock()
						won++
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if won == 0 {
				none++
			}
			time.Sleep(5 * time.Second)
		}
		if none > 0 {
			b.Errorf("10 tried at once for a lock that nobody had: in %d of 20 rounds nobody got it", none)
		}
	})
}

// The holder dies. One clock of three was set back: the others' votes are a majority, one lease later.
func TestAttackALineThatWasSetBack(t *testing.T) {
	on(t, 3, func(b *bed) {
		line := b.line("x")
		c, w := b.client(client.Config{}), b.client(client.Config{})
		defer w.Close()
		_, err := c.Acquire(b.Context(), "x")
		require.NoError(b, err)
		time.Sleep(2 * time.Second)
		b.nodes[line].SetClock(-70*time.Second, 0)
		c.Close()
		began := time.Now()
		assert.NoError(b, <-b.waiting(w, 10*time.Minute))
		if d := time.Since(began); d > lease+5*time.Second {
			b.Errorf("the next one had it %v after the holder's death, with a lease of %v", d, lease)
		}
	})
}

// An option without an address is a mistake in the program, not a server that is down.
func TestAttackNoAddress(t *testing.T) {
	on(t, 2, func(b *bed) {
		c, err := quorum.Open(append(b.options("h"), rueidis.ClientOption{}), client.Config{Lease: lease})
		assert.ErrorIs(b, err, client.ErrArgument)
		if c != nil {
			c.Close()
		}
	})
}

// Two servers that are one, also under two names, are an ErrArgument.
func TestAttackMembers(t *testing.T) {
	on(t, 3, func(b *bed) {
		all := b.options("h")
		h := b.world.Host("h")
		alias := rueidis.ClientOption{InitAddress: []string{"alias:6379"}, ForceSingleClient: true, MaxFlushDelay: -1}
		alias.DialCtxFn = aliasDial(h, b.nodes[0].Addr())
		for _, down := range []bool{false, true} {
			if down {
				b.nodes[0].Kill()
			}
			c, err := quorum.Open([]rueidis.ClientOption{all[0], alias, all[1], all[2], {InitAddress: []string{"s9:6379"}, ForceSingleClient: true, DialCtxFn: h.Dial}}, client.Config{Lease: lease})
			b.Logf("down %v: %v", down, err)
			if !down {
				assert.ErrorIs(b, err, client.ErrArgument, "two names of one server")
			}
			if c != nil {
				c.Close()
			}
		}
		time.Sleep(10 * time.Second)
		b.nodes[0].Restart(redis.Everything)
		// three of five, two of them one server that comes later
		b.nodes[0].Kill()
		c, err := quorum.Open([]rueidis.ClientOption{all[0], all[1], alias}, client.Config{Lease: lease})
		b.Logf("one of two servers answers: %v", err)
		if c != nil {
			c.Close()
		}
	})
}

// A server that joins later under a second name must not vote twice.
func TestAttackTwoNamesLater(t *testing.T) {
	on(t, 4, func(b *bed) {
		all := b.options("h")
		h := b.world.Host("h")
		alias := all[0]
		alias.InitAddress = []string{"alias:6379"}
		alias.DialCtxFn = aliasDial(h, b.nodes[0].Addr())
		b.nodes[0].Kill()
		c, err := quorum.Open([]rueidis.ClientOption{all[0], alias, all[1], all[2], all[3]}, client.Config{Lease: lease})
		require.NoError(b, err)
		defer c.Close()
		b.nodes[0].Restart(redis.Everything)
		time.Sleep(lease + 30*time.Second)
		b.nodes[2].Kill()
		b.nodes[3].Kill()
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
		defer cancel()
		l, err := c.Acquire(ctx, "x")
		if err == nil {
			b.Errorf("had with two servers of four: %v", b.votes("x", l.Owner()))
		}
		b.Logf("%v", err)
	})
}

// The same while another server is down, one of three: all clocks are right.
func TestAttackClocksThatAreRightWithAServerDown(t *testing.T) {
	on(t, 3, func(b *bed) {
		line := b.line("x")
		c, w := b.client(client.Config{}), b.client(client.Config{})
		defer c.Close()
		defer w.Close()
		l, err := c.Acquire(b.Context(), "x")
		require.NoError(b, err)
		got := b.waiting(w, 10*time.Minute)
		time.Sleep(2 * time.Second)
		b.nodes[line].Restart(redis.Nothing)
		b.load(b.nodes[line])
		time.Sleep(90 * time.Second)
		b.nodes[(line+1)%3].Kill()
		time.Sleep(100 * time.Millisecond)
		b.Logf("release: %v", l.Release(b.Context()))
		assert.NoError(b, <-got)
	})
}
