// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/oracle"
	"github.com/holdfast-go/holdfast/integration/server"
)

const (
	contenders = 6
	contested  = "contested"

	// After a failover everybody must be inside again within this time, of which a busy machine, Sentinel or a
	// Cluster that finds its way can need most. What a forced one may add
	// is the lease of a lock whose release was not replicated; that lease is longer than the
	// failover, so that two holders are possible at all.
	recovery    = 30 * time.Second
	forcedLease = 6 * time.Second

	// Clients find out over seconds that their node is no longer the primary, and the damage is
	// done until they do.
	aftermath = 2 * time.Second

	// What a busy machine adds between an answer of the server and the entry.
	lateness = 250 * time.Millisecond
)

// contest is clients that want one lock, while something happens to its servers.
type contest struct {
	*bed
	room
	t       *testing.T
	clients []*client.Client
}

// contest makes the clients. The test may take some minutes, which is longer than others do.
func (b *bed) contest(t *testing.T, minutes int, connect func(i int) *client.Client) *contest {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(minutes)*time.Minute)
	t.Cleanup(cancel)
	b.Ctx = ctx
	c := &contest{bed: b, t: t, room: room{judge: oracle.Judge{Aftermath: lateness}}}
	for i := range contenders {
		c.clients = append(c.clients, connect(i))
	}
	return c
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
	h := c.enter(i, l)
	select {
	case <-l.Context().Done():
	case <-time.After(rand.N(10 * time.Millisecond)): // two who meet are seen, and the machine has time for others
	}
	c.leave(h, l)
	if err := l.Release(c.Ctx); err != nil {
		c.failed("Release", err)
	}
}

// until blocks until what was counted is enough.
func (c *contest) until(bound time.Duration, enough func(p period) bool) {
	c.t.Helper()
	deadline := time.Now().Add(bound)
	for p := c.seen(); !enough(p); p = c.seen() {
		if time.Now().After(deadline) {
			require.Fail(c.t, "somebody is not inside again", "in %v: %v; on the servers: %v", bound, p, c.known())
		}
		<-time.After(2 * time.Millisecond)
	}
}

// everybodyEnters blocks until each client has been inside once more.
func (c *contest) everybodyEnters(bound time.Duration) {
	c.t.Helper()
	before := len(c.seen().holds)
	c.until(bound, func(p period) bool {
		who := map[string]bool{}
		for _, h := range p.holds[before:] {
			who[h.Who] = true
		}
		return len(who) == contenders
	})
}

// known is what the servers know of the lock, for people.
func (c *contest) known() (known []any) {
	for _, n := range c.D.Nodes() {
		ctx, cancel := context.WithTimeout(c.Ctx, time.Second) // it may be paused
		m, err := n.Do(ctx, "HGETALL", prefix+contested)
		cancel()
		fields, _ := m.AsStrMap()
		known = append(known, fields, err)
	}
	return known
}

// alone asserts that nobody was inside beside another.
func (c *contest) alone(p period) {
	c.t.Helper()
	beside, tokens := c.found()
	wrong := append(beside.Violations, tokens...)
	assert.Empty(c.t, wrong[:min(3, len(wrong))], "the first of %d", len(wrong))
	assert.Empty(c.t, p.strange[:min(3, len(p.strange))])
}

// failover replaces the first node by the second as the primary, by a change, and blocks until everybody was
// inside again. It returns what happened since, with some time to spare, and when the change was.
func (c *contest) failover(how string, bound time.Duration, old *server.Node, change func() error) (period, span) {
	c.t.Helper()
	took := span{from: now()}
	c.reset()
	require.NoError(c.t, change())
	// until then it goes on granting, but not for long
	c.Eventually("the old primary is none any more", func() bool {
		primary, err := old.IsPrimary(c.Ctx)
		return err != nil || !primary
	})
	took.to = now()
	c.everybodyEnters(bound)
	again := now().Sub(took.to)
	<-time.After(aftermath) // the length of the test, not an event
	p := c.reset()
	c.log(how, took, again, p)
	return p, took
}

func (c *contest) log(how string, took span, again time.Duration, p period) {
	_, longest := p.within(span{took.from, now()})
	c.t.Logf("%s took %v, all inside again after %v, longest without an entry %v: %v", how,
		took.to.Sub(took.from).Round(time.Millisecond), again.Round(time.Millisecond), longest.Round(time.Millisecond), p)
}

// began is when stamps begin, by the monotonic clock.
var began = time.Now()

func now() oracle.Stamp { return oracle.Stamp(time.Since(began)) }

// span is a stretch of time, as from before a failover to when the old primary granted no more.
type span struct{ from, to oracle.Stamp }

// period is what happened in the room over one fault.
type period struct {
	holds       []*oracle.Hold // of those who came in, in order
	lost        int            // calls that said so of their lock
	taken       int            // of these, while the lease had not ended
	unreachable int            // calls that did not reach the server
	strange     []error        // of calls, that no fault explains
}

func (p period) String() string {
	return fmt.Sprintf("%d entries; %d locks lost, %d calls unreachable", len(p.holds), p.lost, p.unreachable)
}

// within counts the entries of a span, and returns the longest time in it without one.
func (p period) within(s span) (entries int, longest time.Duration) {
	last := s.from
	for _, h := range p.holds {
		if h.Enter < s.from || h.Enter > s.to {
			continue
		}
		entries++
		longest, last = max(longest, h.Enter.Sub(last)), h.Enter
	}
	return entries, max(longest, s.to.Sub(last))
}

// room is where only the holder of the lock may be.
type room struct {
	mu    sync.Mutex
	judge oracle.Judge
	holds []*oracle.Hold // of all periods
	from  int            // where the present one begins
	now   period
}

// enter is for one whose context has not ended. It was granted the lock a moment before, which on a busy
// machine is the judge's aftermath.
func (r *room) enter(i int, l *client.Lock) *oracle.Hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := now()
	lives := l.Context().Err() == nil
	h := &oracle.Hold{Who: fmt.Sprint("client ", i), Level: oracle.Default, Owner: l.Owner(), Token: l.Fence(),
		Start: at, Enter: at, Last: at, End: oracle.Forever}
	if lives {
		r.holds = append(r.holds, h)
	}
	return h
}

func (r *room) leave(h *oracle.Hold, l *client.Lock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := now(); l.Context().Err() == nil {
		h.Last = at
	}
}

// failed counts an error of a call. A fault explains that the server could not be reached, and that a lock
// was lost.
func (r *room) failed(call string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, client.ErrLost):
		r.now.lost++
		if !errors.Is(err, client.ErrExpired) {
			r.now.taken++
		}
	case errors.Is(err, client.ErrUnreachable):
		r.now.unreachable++
	default:
		r.now.strange = append(r.now.strange, fmt.Errorf("%s: %w", call, err))
	}
}

// found is who was inside beside another one, and whose token was not above all before.
func (r *room) found() (oracle.Finding, []oracle.Violation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.judge.Exclusion(r.holds), oracle.Tokens(r.holds)
}

// seen returns what was counted so far.
func (r *room) seen() period {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.now
	p.holds = r.holds[r.from:len(r.holds):len(r.holds)]
	return p
}

// reset returns what was counted, and begins anew.
func (r *room) reset() period {
	p := r.seen()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.now = r.from+len(p.holds), period{}
	return p
}
