package failure

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

const (
	contenders = 6
	contested  = "contested"

	// After a failover everybody must be inside again within this time. What a forced one may add
	// is the lease of a lock whose release was not replicated; that lease is longer than the
	// failover, so that two holders are possible at all.
	recovery    = 10 * time.Second
	forcedLease = 6 * time.Second

	// Clients find out over seconds that their node is no longer the primary, and the damage is
	// done until they do.
	aftermath = 2 * time.Second
)

// Clients want one lock without pause while its primary changes. A failover in good order loses
// nothing, so nobody is ever inside beside another. A forced one, or a killed primary, may lose the
// last lock that the old primary granted, as the README's table says: then its holder may meet the
// first one of the new primary, once, and the newcomer has the higher token.
func TestNobodyIsInsideBesideAnotherOverFailovers(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		for name, change := range map[string]func(*rueidis.ClientOption){
			"default":       func(*rueidis.ClientOption) {},
			"replica reads": func(o *rueidis.ClientOption) { o.SendToReplicas = readsOnly },
		} {
			t.Run(name, func(t *testing.T) {
				b := lay(t, server.Cluster(t, server.Owned(), server.WithFlavour(f)))
				var cancel context.CancelFunc
				// seven failovers take longer than other tests
				b.Ctx, cancel = context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				option := b.D.ClientOption()
				change(&option)
				c := contest{bed: b}
				for range contenders {
					c.clients = append(c.clients, b.Connect(option, client.Config{}))
				}
				c.pair[0], c.pair[1] = b.pair(contested)
				c.inGoodOrder(t)
				c.byForce(t)
			})
		}
	})
}

// readsOnly is what users who read from replicas set; it includes subscriptions.
func readsOnly(cmd rueidis.Completed) bool { return cmd.IsReadOnly() }

// contest is clients that want one lock, and the primary of its slot with the replica. They change
// places.
type contest struct {
	*bed
	room
	clients []*client.Client
	pair    [2]*server.Node
}

func (c *contest) inGoodOrder(t *testing.T) {
	defer c.contend()()
	c.everybodyEnters(recovery)
	for range 3 {
		c.failover(t, "in good order", recovery, func() error { return c.pair[1].Failover(c.Ctx) })
		p := c.reset()
		for _, o := range p.overlaps[:min(1, len(p.overlaps))] {
			assert.Fail(t, "two inside", "%d times in %d entries; first %v", len(p.overlaps), p.total(), o)
		}
		assert.Zero(t, p.disorder, "tokens that were not above all before")
		assert.Zero(t, p.lost, "locks lost")
		assert.Empty(t, p.strange)
	}
}

func (c *contest) byForce(t *testing.T) {
	defer c.contend(client.WithLease(forcedLease))()
	c.everybodyEnters(recovery)
	for _, how := range []string{"FORCE", "TAKEOVER", "FORCE", "SIGKILL"} {
		var killed time.Time
		took := c.failover(t, how, forcedLease+recovery, func() error {
			if how != "SIGKILL" {
				return c.pair[1].Failover(c.Ctx, how)
			}
			err := c.pair[0].Kill()
			killed = time.Now()
			return errors.Join(err, c.pair[1].Promoted(c.Ctx))
		})
		if how == "SIGKILL" {
			took.to = killed
		}
		p := c.reset()
		assert.LessOrEqual(t, len(p.overlaps), 1, "%s: entries beside another, of %d", how, p.total())
		for _, o := range p.overlaps[:min(1, len(p.overlaps))] {
			assert.True(t, o.admitted(took), "%s from %v to %v: %v", how, took.from.Format(clock), took.to.Format(clock), o)
		}
		assert.Empty(t, p.strange)
	}
}

// failover changes the primary and blocks until everybody was inside again. Then it goes on for the
// aftermath.
func (c *contest) failover(t *testing.T, how string, bound time.Duration, change func() error) span {
	t.Helper()
	took := span{from: time.Now()}
	c.reset()
	require.NoError(t, change())
	// until then it goes on granting, but not for long
	c.Eventually("the old primary is none any more", func() bool {
		primary, err := c.pair[0].IsPrimary(c.Ctx)
		return err != nil || !primary
	})
	took.to = time.Now()
	c.pair[0], c.pair[1] = c.pair[1], c.pair[0]
	c.everybodyEnters(bound)
	again := time.Since(took.to)
	<-time.After(aftermath) // the length of the test, not an event
	c.room.log(t, how, took, again)
	return took
}

// everybodyEnters blocks until each client has been inside once more.
func (c *contest) everybodyEnters(bound time.Duration) {
	c.TB.Helper()
	before := c.counts()
	since := func() []int {
		now := c.counts()
		for i, n := range before {
			now[i] -= n
		}
		return now[:]
	}
	deadline := time.Now().Add(bound)
	for slices.Contains(since(), 0) {
		if time.Now().After(deadline) {
			require.Fail(c.TB, "somebody is not inside again", "entries of each in %v: %v; on the primary: %v", bound, since(), c.lock())
		}
		<-time.After(2 * time.Millisecond)
	}
}

// lock is what the primary knows of the lock, or each of several servers, for people.
func (c *contest) lock() any {
	from := c.pair[:1]
	if c.D.Kind == server.KindSeveral {
		from = c.D.Nodes()
	}
	var known []any
	for _, n := range from {
		ctx, cancel := context.WithTimeout(c.Ctx, time.Second) // it may be paused
		m, err := n.Do(ctx, "HGETALL", prefix+contested)
		cancel()
		fields, _ := m.AsStrMap()
		known = append(known, fields, err)
	}
	return known
}

// contend lets all clients want the lock until the returned func is called.
func (c *contest) contend(opts ...client.Option) (stop func()) {
	ctx, cancel := context.WithCancel(c.Ctx)
	var all sync.WaitGroup
	for i, one := range c.clients {
		all.Go(func() {
			for ctx.Err() == nil {
				c.turn(ctx, i, one, opts)
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// turn takes the lock, works under its context, and gives it back.
func (c *contest) turn(ctx context.Context, i int, one *client.Client, opts []client.Option) {
	l, err := one.Acquire(ctx, contested, opts...)
	if err != nil {
		if ctx.Err() == nil {
			c.failed("Acquire", err)
			<-time.After(10 * time.Millisecond) // what a caller does: not at once again
		}
		return
	}
	c.enter(i, l)
	select {
	case <-l.Context().Done():
	case <-time.After(rand.N(2 * time.Millisecond)):
	}
	c.leave(i)
	if err := l.Release(c.Ctx); err != nil {
		c.failed("Release", err)
	}
}
