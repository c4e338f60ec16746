package failure

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// What the key keeps needs no process, no message and no memory of the server.

const least = 3 * time.Second

// afterTheMinimum requires that the next one got the lock when the minimum was over, by the server's clock: the
// tokens tell.
func (b *bed) afterTheMinimum(first int64, next *client.Lock) {
	b.TB.Helper()
	kept := time.Duration(next.Fence()-first) * time.Microsecond
	require.GreaterOrEqual(b.TB, kept, least-time.Millisecond)
	require.Less(b.TB, kept, least+2*time.Second)
	b.Release(next)
}

func (b *bed) token(name string) int64 {
	b.TB.Helper()
	token, err := b.Do(name, "HGET", "fence").AsInt64()
	require.NoError(b.TB, err)
	return token
}

// The process is killed with kill -9 while it works; its lease is much shorter than the minimum.
func TestAMinimumIsKeptWhenTheProcessIsKilled(t *testing.T) {
	b := single(t)
	h := reexec.Spawn(b.TB, holder, job{b.D.Nodes()[0].Addr, "a", 300 * time.Millisecond, least})
	h.Hear("held")
	first := b.token("a")
	waiting := b.Acquire(b.Ctx, b.open(testbed.Long), "a")
	h.Kill()
	b.afterTheMinimum(first, b.Locked(waiting).Lock)
}

// The server cannot be reached from the Release on.
func TestAMinimumIsKeptWhenReleaseCannotReachTheServer(t *testing.T) {
	b := single(t)
	c, proxy := b.through(300 * time.Millisecond)
	l, err := c.Acquire(b.Ctx, "a", client.WithMinHold(least))
	require.NoError(t, err)
	proxy.Stall()
	defer proxy.Resume()
	short, cancel := context.WithTimeout(b.Ctx, 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.Release(short), client.ErrUnreachable)
	b.afterTheMinimum(l.Fence(), b.Locked(b.Acquire(b.Ctx, b.open(testbed.Long), "a")).Lock)
}

// The primary is lost after the Release, and its replica is promoted.
func TestAMinimumAndABreakOutliveAFailover(t *testing.T) {
	t.Parallel()
	b := lay(t, server.Replicated(t, 1, server.Owned()))
	c, operator := b.open(testbed.Long), b.open(testbed.Long)
	l, err := c.Acquire(b.Ctx, "a", client.WithMinHold(testbed.Long))
	require.NoError(t, err)
	b.Release(l)
	broken, err := c.Acquire(b.Ctx, "b", client.WithRenewal(0))
	require.NoError(t, err)
	_, err = operator.Break(b.Ctx, "b", "deploy stuck")
	require.NoError(t, err)
	primary, replica := b.D.Nodes()[0], b.D.Nodes()[1]
	b.replicated(primary)
	call := func(words ...string) []string {
		m, err := replica.Do(b.Ctx, append([]string{"FCALL"}, words...)...)
		require.NoError(t, err)
		values, err := m.ToArray()
		require.NoError(t, err)
		text := make([]string, len(values))
		for i, v := range values {
			if n, err := v.AsInt64(); err == nil {
				text[i] = strconv.FormatInt(n, 10)
			} else {
				text[i], _ = v.ToString()
			}
		}
		return text
	}
	_, err = replica.Do(b.Ctx, "REPLICAOF", "NO", "ONE")
	require.NoError(t, err)
	refused := call(functions.Acquire, "1", prefix+"a", "another", "1000")
	require.Equal(t, []string{"0", functions.WhyKept}, []string{refused[0], refused[4]})
	refused = call(functions.Renew, "1", prefix+"b", broken.Owner(), "1000")
	require.Equal(t, "0", refused[0])
	require.Contains(t, refused[4], functions.WhyBroken+" ")
	require.Contains(t, refused[4], "deploy stuck")
}

// The holder hears nothing while its lock is broken and another one has had it.
func TestTheReasonOfABreakIsLearnedWithoutItsMessage(t *testing.T) {
	b := single(t)
	c, proxy := b.through(testbed.Long)
	first := b.open(testbed.Long)
	l := b.Take(first, "a")
	waiting := b.Acquire(b.Ctx, c, "a") // so it is told on its channel
	b.Line(first, "a", 1)
	b.Release(l)
	l = b.Locked(waiting).Lock
	require.NoError(t, l.Renew(b.Ctx))
	proxy.Stall()
	_, err := first.Break(b.Ctx, "a", "deploy stuck")
	require.NoError(t, err)
	next := b.Take(first, "a")
	proxy.Cut()
	proxy.Resume()
	b.Eventually("the holder knows", func() bool { return l.Renew(b.Ctx) != nil && l.Context().Err() != nil })
	var lost *client.LostError
	require.ErrorAs(t, context.Cause(l.Context()), &lost)
	require.ErrorIs(t, lost, client.ErrBroken)
	require.Contains(t, lost.Reason, "deploy stuck")
	b.Release(next)
}

// A token that came from elsewhere, ahead of this server's clock, outlives the release and a load of the
// library, which takes the server's memory.
func TestATokenAheadOfTheClockSurvivesALoad(t *testing.T) {
	b := single(t)
	c := b.open(testbed.Long)
	l := b.Take(c, "a")
	ahead := time.Now().Add(30 * time.Second).UnixMicro()
	b.do("FCALL", functions.Renew, "1", prefix+"a", l.Owner(), "20000", functions.OptRaise, strconv.FormatInt(ahead, 10))
	b.do("FCALL", functions.Release, "1", prefix+"a", l.Owner())
	b.do("FUNCTION", "LOAD", "REPLACE", functions.Source)
	next := b.Take(b.open(testbed.Long), "a") // c does not know yet that it has lost it
	require.Greater(t, next.Fence(), ahead)
	b.Release(next)
	_ = l.Release(b.Ctx)
}
