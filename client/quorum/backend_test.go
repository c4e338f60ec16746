// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// bed is several real servers, and a Backend of them.
type bed struct {
	*servers
	t     *testing.T
	nodes []*server.Node
	seq   atomic.Int64
}

func several(t *testing.T, n int) *bed {
	t.Helper()
	d := server.Several(t, n)
	b := &bed{t: t, nodes: d.Nodes()}
	b.servers = newServers(n, client.Config{AutoLoad: true})
	for i, option := range d.ClientOptions() {
		option.DisableCache = true
		option.PipelineMultiplex = -1
		redis, err := rueidis.NewClient(option)
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		b.use(b.members[i], redis)
	}
	t.Cleanup(b.end)
	return b
}

// A replica has no vote, and keeps nobody from the server that it is of.
func TestAReplicaIsNotRemembered(t *testing.T) {
	s := newServers(3, client.Config{})
	t.Cleanup(s.end)
	for i, n := range slices.Backward(server.Replicated(t, 1, server.Owned()).Nodes()) {
		redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{n.Addr}, DisableCache: true})
		require.NoError(t, err)
		t.Cleanup(redis.Close)
		require.Equal(t, i > 0, s.independent(redis, s.members[i]) != nil, n.Role)
	}
}

func (b *bed) owner() string { return fmt.Sprintf("o%d", b.seq.Add(1)) }

func (b *bed) call(verb fcall.Verb, owner string) fcall.Call {
	return fcall.Call{Verb: verb, Key: "lock:x", Owner: owner, TTL: fcall.TTL(time.Minute)}
}

func (b *bed) do(call fcall.Call) fcall.Reply {
	b.t.Helper()
	r, err := b.Do(b.t.Context(), call)
	require.NoError(b.t, err)
	return r
}

// Who has to ask again for votes can still have tokens raised: no clock is behind then.
func TestALateVoteIsNoClock(t *testing.T) {
	b := several(t, 3)
	owner, _ := b.take() // the functions are loaded
	b.release(owner)
	first := b.first("lock:x")
	b.members[(first+2)%3].caller.Store(nil)
	for range 40 {
		owner := b.owner()
		_, err := b.nodes[(first+1)%3].Do(t.Context(), "FCALL", functions.Acquire, "1", "lock:x", "other", "11")
		require.NoError(t, err)
		r, err := b.Do(t.Context(), b.call(fcall.Acquire, owner))
		require.NoError(t, err)
		if r.Yes {
			_, _ = b.Do(t.Context(), b.call(fcall.Release, owner))
		}
	}
}

// undo is what a keeper does.
func (b *bed) undo(call fcall.Call) {
	for pause := 5 * time.Millisecond; b.t.Context().Err() == nil; pause = min(2*pause, time.Second) {
		o := b.Send(b.t.Context(), []fcall.Call{call})[0]
		if o.Err == nil && !o.Spent {
			return
		}
		if o.Err != nil {
			require.ErrorIs(b.t, o.Err, fcall.ErrUnreachable)
		}
		time.Sleep(pause)
	}
}

func (b *bed) take() (owner string, r fcall.Reply) {
	b.t.Helper()
	for {
		owner = b.owner()
		if r = b.do(b.call(fcall.Wait, owner)); r.Yes {
			return owner, r
		}
		if r.Spent {
			b.undo(b.call(fcall.Leave, owner))
		}
		time.Sleep(r.Again)
	}
}

// release gives a lock back everywhere, and returns what its first call said.
func (b *bed) release(owner string) fcall.Reply {
	b.t.Helper()
	r := b.do(b.call(fcall.Release, owner))
	if r.Spent {
		b.undo(b.call(fcall.Release, owner))
	}
	return r
}

// has are the owners that the servers have, "" for those that have none.
func (b *bed) has() (owners []string) {
	b.t.Helper()
	for _, m := range b.members {
		r, err := m.caller.Load().Do(b.t.Context(), b.call(fcall.Inspect, ""))
		require.NoError(b.t, err)
		owners = append(owners, r.Holder)
	}
	return owners
}

// until waits for what a server does after a majority has answered.
func (b *bed) until(is func() bool) {
	b.t.Helper()
	require.Eventually(b.t, is, time.Minute, time.Millisecond)
}

// takeAll takes the lock, and waits for the votes that come late.
func (b *bed) takeAll() (owner string, r fcall.Reply) {
	b.t.Helper()
	owner, r = b.take()
	of := b.ballots.find(owner, false)
	b.until(func() bool {
		of.all.mu.Lock()
		defer of.all.mu.Unlock()
		return !slices.ContainsFunc(of.seats, func(s seat) bool { return s.last.IsZero() })
	})
	return owner, r
}

func TestALockOfAMajority(t *testing.T) {
	b := several(t, 3)
	owner, first := b.takeAll()
	other := b.owner()
	r := b.do(b.call(fcall.Acquire, other))
	require.False(t, r.Yes)
	require.Equal(t, owner, r.Holder)
	require.Positive(t, r.Again)
	if r.Spent { // one of them was late
		b.undo(b.call(fcall.Leave, other))
	}

	renewal := b.call(fcall.Renew, owner)
	renewal.Fence = first.Fence
	require.Equal(t, fcall.Reply{Yes: true, Fence: first.Fence, Top: first.Fence}, b.do(renewal))
	r = b.do(b.call(fcall.Inspect, ""))
	require.True(t, r.Yes)
	require.Equal(t, owner, r.Holder)
	require.Equal(t, first.Fence, r.Fence)

	require.True(t, b.release(owner).Yes)
	require.Empty(t, b.ballots.by)
	require.False(t, b.do(b.call(fcall.Inspect, "")).Yes)
	_, second := b.take()
	require.Greater(t, second.Fence, first.Fence)
}

// A server whose clock is too far behind a token keeps its own one: that is nobody's bad argument.
func TestAVoteThatCannotBeRaisedStays(t *testing.T) {
	b := several(t, 3)
	owner, r := b.takeAll()
	of := b.ballots.find(owner, false)
	raise := raising(of.wanted(), r.Fence+time.Hour.Microseconds())
	kept, err := of.vote(0, &raise, &r)(t.Context(), b.members[0].caller.Load())
	require.NoError(t, err)
	require.Equal(t, r, kept)
}

func TestABrokenLockSaysWhy(t *testing.T) {
	b := several(t, 3)
	owner, r := b.takeAll()
	breaking := b.call(fcall.Break, owner)
	breaking.Reason = "because"
	broken := b.do(breaking)
	require.True(t, broken.Yes)
	require.Equal(t, owner, broken.Holder)
	renewal := b.call(fcall.Renew, owner)
	renewal.Fence = r.Fence
	said := b.do(renewal)
	require.False(t, said.Yes)
	require.Equal(t, functions.WhyBroken, said.Why)
	require.Equal(t, "because", said.Reason)
	b.until(func() bool { return slices.Equal(b.has(), []string{"", "", ""}) }) // no vote is asked for again
}

// Without a minority, the first server or another one, everything goes on; what is given back is owed
// to a server that does not answer, until it does. Without a majority nothing does.
func TestAMinorityDown(t *testing.T) {
	b := several(t, 3)
	owner, before := b.takeAll()
	down := b.first("lock:x")
	require.NoError(t, b.nodes[down].Pause())
	renewal := b.call(fcall.Renew, owner)
	renewal.Fence = before.Fence
	require.True(t, b.do(renewal).Yes)
	r := b.do(b.call(fcall.Release, owner))
	require.True(t, r.Yes)
	require.True(t, r.Spent, "one has not heard of it")
	o := b.Send(t.Context(), []fcall.Call{b.call(fcall.Release, owner)})[0]
	require.NoError(t, o.Err, "who waits is told what a majority says")
	require.True(t, o.Yes && o.Spent)

	next, after := b.take()
	require.Greater(t, after.Fence, before.Fence)
	require.NoError(t, b.nodes[down].Resume())
	b.undo(b.call(fcall.Release, owner))
	require.NotContains(t, b.has(), owner)

	require.NoError(t, b.nodes[0].Kill())
	require.NoError(t, b.nodes[1].Kill())
	renewal = b.call(fcall.Renew, next)
	renewal.Fence = after.Fence
	_, err := b.Do(t.Context(), renewal)
	require.ErrorIs(t, err, fcall.ErrUnreachable)
}

// A call that found nothing to send is no answer: a server that is silent is not asked without end.
func TestASilentServerIsNotAskedWithoutEnd(t *testing.T) {
	b := several(t, 3)
	b.do(b.call(fcall.Inspect, ""))
	require.NoError(t, b.nodes[0].Pause())
	ended := make(chan answer[fcall.Reply])
	go func() {
		ended <- ask(t.Context(), b.servers, 0, func(ctx context.Context, c *fcall.Caller) (fcall.Reply, error) {
			return c.Do(ctx, b.call(fcall.Inspect, ""))
		})
	}()
	silent := func() bool { return b.members[0].silent(headStart) }
	b.until(silent)
	leave := b.call(fcall.Leave, b.owner())
	b.ballots.open(leave)
	require.True(t, b.Send(t.Context(), []fcall.Call{leave})[0].Yes)
	require.True(t, silent())
	require.NoError(t, b.nodes[0].Resume())
	require.NoError(t, (<-ended).err)
	b.do(b.call(fcall.Inspect, ""))
	require.False(t, silent())
}

// Counted, not timed: what ten calls cost.
func TestWhatALockCosts(t *testing.T) {
	d := server.Several(t, 5)
	b := &bed{t: t, nodes: d.Nodes(), servers: newServers(5, client.Config{AutoLoad: true})}
	t.Cleanup(b.close)
	require.NoError(t, b.connect(d.ClientOptions()))
	require.Less(t, testing.AllocsPerRun(300, func() {
		owner, _ := b.take()
		b.release(owner)
	}), 150.0)
}

// A server that lost its vote gives it again at a renewal, with the token.
func TestAVoteIsRestored(t *testing.T) {
	b := several(t, 3)
	owner, r := b.takeAll()
	lost := (b.first("lock:x") + 1) % 3
	_, err := b.nodes[lost].Do(t.Context(), "DEL", "lock:x")
	require.NoError(t, err)
	of := b.ballots.find(owner, false)
	of.all.mu.Lock()
	of.seats[lost].last = time.Time{} // a lease ago
	of.all.mu.Unlock()
	renewal := b.call(fcall.Renew, owner)
	renewal.Fence = r.Fence
	require.True(t, b.do(renewal).Yes)
	b.until(func() bool { return b.has()[lost] == owner })
}

// A request for a vote was lost with its connection, and runs after its owner was given back everywhere: who
// gives back again takes that vote back.
func TestAGivingBackThatIsRepeatedGoesToAll(t *testing.T) {
	b := several(t, 3)
	owner, _ := b.takeAll()
	b.release(owner)
	b.until(func() bool { b.undo(b.call(fcall.Release, owner)); return len(b.ballots.by) == 0 })
	for _, m := range b.members[1:] {
		_, err := m.caller.Load().Do(t.Context(), b.call(fcall.Acquire, owner))
		require.NoError(t, err)
	}
	b.undo(b.call(fcall.Release, owner))
	b.until(func() bool { return slices.Equal(b.has(), []string{"", "", ""}) })
}

// The same while another server is down: the one whose request had no answer hears of it each time.
func TestALateVoteIsTakenBackWhileAServerIsDown(t *testing.T) {
	b := several(t, 3)
	owner, _ := b.takeAll()
	down := (b.first("lock:x") + 1) % 3
	late := (down + 1) % 3
	of := b.ballots.find(owner, false)
	require.True(t, of.asks(late))
	of.heard(late, time.Now(), b.call(fcall.Acquire, owner), fcall.Outcome{Err: fcall.ErrUnreachable})
	require.NoError(t, b.nodes[down].Kill())
	require.True(t, b.do(b.call(fcall.Release, owner)).Spent)
	c := b.members[late].caller.Load()
	call := b.call(fcall.Acquire, owner)
	call.TTL = fcall.TTL(time.Hour)
	_, err := c.Do(t.Context(), call) // now it runs
	require.NoError(t, err)
	require.True(t, b.Send(t.Context(), []fcall.Call{b.call(fcall.Release, owner)})[0].Spent)
	b.until(func() bool {
		r, err := c.Do(t.Context(), b.call(fcall.Inspect, ""))
		return err == nil && r.Holder == ""
	})
}

// A server that refuses one call of a pipeline, here the last, has answered: the others' outcomes do not
// wait for one that is silent.
func TestARefusedCallIsAnAnswer(t *testing.T) {
	b := several(t, 3)
	b.takeAll()
	c, counts := b.members[0].caller.Load(), make([]count, 2)
	_, err := b.nodes[0].Do(t.Context(), "HSET", "no:lock", "a", "b")
	require.NoError(t, err)
	for i, key := range []string{"lock:x", "no:lock"} {
		counts[i] = count{b.poll(), fcall.Call{Verb: fcall.Inspect, Key: key}, false, b.ballots.find("", false)}
	}
	outcomes, err := deliver(t.Context(), 0, c, counts)
	require.NoError(t, err)
	require.True(t, outcomes[0].Yes)
	require.ErrorIs(t, outcomes[1].Err, fcall.ErrNotALock)
}

// Votes of a minority that were left behind, of several owners and where they are asked first, keep nobody
// out for long.
func TestAMinorityKeepsNobodyOut(t *testing.T) {
	for _, n := range []int{3, 5} {
		b, place := several(t, n), "lock:x\n"
		b.rivals.met("lock:x", "other", time.Now())
		for i := range n / 2 {
			left := b.call(fcall.Acquire, b.owner())
			left.TTL = fcall.TTL(time.Hour)
			_, err := b.members[(b.first(left.Key)+i)%n].caller.Load().Do(t.Context(), left)
			require.NoError(t, err)
			b.rivals.met(place, left.Owner, time.Now().Add(-believed)) // it has said so for long
			place += "\n" + left.Owner
		}
		yes := false
		for began := time.Now(); !yes; { // at once, unless the machine stood still: they are believed again then
			require.Less(t, time.Since(began), 100*believed)
			owner := b.owner()
			r := b.do(b.call(fcall.Acquire, owner))
			if yes = r.Yes; r.Spent {
				b.undo(b.call(fcall.Leave, owner))
			}
		}
	}
}

// Sixteen want one lock all the time, while a server is paused and comes back: one has it at a time,
// its token is higher than those before, everybody gets it, and nothing stays behind.
func TestContenders(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := several(t, n)
			b.do(b.call(fcall.Inspect, "")) // loads the library
			const contenders, turns = 16, 12
			var inside, last, granted atomic.Int64
			var all, undone sync.WaitGroup
			undo := func(call fcall.Call) { undone.Go(func() { b.undo(call) }) }
			for range contenders {
				all.Go(func() {
					for turn := 0; turn < turns; {
						owner := b.owner()
						r, err := b.Do(t.Context(), b.call(fcall.Wait, owner))
						if err != nil {
							require.ErrorIs(t, err, fcall.ErrUnreachable)
							undo(b.call(fcall.Leave, owner))
							time.Sleep(20 * time.Millisecond)
							continue
						}
						if !r.Yes {
							if r.Spent {
								undo(b.call(fcall.Leave, owner))
							}
							time.Sleep(r.Again)
							continue
						}
						turn++
						granted.Add(1)
						require.EqualValues(t, 1, inside.Add(1))
						require.Greater(t, r.Fence, last.Swap(r.Fence))
						inside.Add(-1)
						if r, err = b.Do(t.Context(), b.call(fcall.Release, owner)); err != nil || r.Spent {
							undo(b.call(fcall.Release, owner))
						}
					}
				})
			}
			b.until(func() bool { return granted.Load() >= contenders*turns/4 })
			first := b.first("lock:x")
			require.NoError(t, b.nodes[first].Pause())
			b.until(func() bool { return granted.Load() >= contenders*turns/2 })
			require.NoError(t, b.nodes[first].Resume())
			all.Wait()
			undone.Wait()
			require.Empty(t, b.ballots.by)
			require.Equal(t, make([]string, n), b.has())
		})
	}
}
