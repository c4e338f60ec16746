// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func over(t *testing.T, d *server.Deployment) *Backend {
	t.Helper()
	option := d.ClientOption()
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	return New(fcall.New(fcall.Config{Redis: redis, AutoLoad: true,
		Closing: t.Context(), Heard: func() {}, Changed: func(string, bool) {}, Untracked: func(error) {}, Demoted: func() {}}))
}

const (
	wait  = time.Minute // for a replica that answers
	short = 50 * time.Millisecond
)

func call(verb fcall.Verb, key string) fcall.Call {
	return fcall.Call{Verb: verb, Key: key, Owner: "o", TTL: "60000", Replicas: 1, ReplicaWait: wait}
}

func TestTooFewReplicas(t *testing.T) {
	d := server.Replicated(t, 1)
	b := over(t, d)
	r, err := b.Do(t.Context(), call(fcall.Acquire, "lock:x"))
	require.NoError(t, err)
	require.True(t, r.Yes)

	require.NoError(t, d.Nodes()[1].Pause())
	renewal := call(fcall.Renew, "lock:x")
	renewal.ReplicaWait = short
	_, err = b.Do(t.Context(), renewal)
	require.ErrorIs(t, err, fcall.ErrNotReplicated)
	require.True(t, fcall.Unknown(err), "it was done at the primary")
	other := call(fcall.Acquire, "lock:x")
	other.Owner, other.ReplicaWait = "other", short
	r, err = b.Do(t.Context(), other)
	require.NoError(t, err, "a no needs no replicas")
	require.Equal(t, "o", r.Holder)
	free := call(fcall.Acquire, "lock:y")
	free.Replicas = 0
	r, err = b.Do(t.Context(), free)
	require.NoError(t, err)
	require.True(t, r.Yes)

	outcomes := b.Send(t.Context(), []fcall.Call{renewal, {Verb: fcall.Leave, Key: "lock:y", Owner: "o"}})
	require.ErrorIs(t, outcomes[0].Err, fcall.ErrNotReplicated)
	require.NoError(t, outcomes[1].Err)
	require.True(t, outcomes[1].Yes)
	require.NoError(t, d.Nodes()[1].Resume())
	o := b.Send(t.Context(), []fcall.Call{call(fcall.Renew, "lock:x")})[0]
	require.NoError(t, o.Err)
	require.True(t, o.Yes)
}

// Calls of one node share a pipeline, with one WAIT, in a Cluster too.
func TestCallsOfANodeShareAPipeline(t *testing.T) {
	d := server.Cluster(t)
	b := over(t, d)
	calls := make([]fcall.Call, 50)
	for i := range calls {
		calls[i] = call(fcall.Acquire, fmt.Sprintf("lock:{a}%d", i))
	}
	for _, o := range b.Send(t.Context(), calls[:1]) { // loads the library, and learns the homes
		require.NoError(t, o.Err)
	}
	waits := func() (n int) {
		for _, node := range d.Nodes() {
			info, err := node.Do(t.Context(), "INFO", "commandstats")
			require.NoError(t, err)
			text, err := info.ToString()
			require.NoError(t, err)
			_, rest, _ := strings.Cut(text, "cmdstat_wait:calls=")
			here := 0
			_, _ = fmt.Sscan(rest, &here)
			n += here
		}
		return n
	}
	before := waits()
	for _, o := range b.Send(t.Context(), calls) {
		require.NoError(t, o.Err)
		require.True(t, o.Yes)
	}
	require.Equal(t, 1, waits()-before)
}

// cut is a client whose first pipeline has no answer, because its connection ends.
type cut struct {
	rueidis.Client
	done bool
}

func (c *cut) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	if c.done {
		return c.Client.DoMulti(ctx, commands...)
	}
	c.done = true
	return slices.Repeat([]rueidis.RedisResult{rueidis.NewErrorResult(io.ErrUnexpectedEOF)}, len(commands))
}

// That a call was repeated behind one that may run late is not kept from its caller: or else nobody
// undoes what the late one takes.
func TestACallThatWasRepeatedMayRunLate(t *testing.T) {
	b := over(t, server.Replicated(t, 1))
	redis := b.Redis
	for _, wants := range []bool{true, false} {
		b.Redis = &cut{Client: redis}
		c := call(fcall.Acquire, "lock:x")
		c.Owner = fmt.Sprint(wants)
		r, err := b.Do(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, wants, r.Yes)
		require.True(t, r.Doubt)
	}
	r, err := b.Do(t.Context(), call(fcall.Inspect, "lock:x"))
	require.NoError(t, err)
	require.False(t, r.Doubt)
}

// A slot that has moved answers a redirect, and then with the new home's replicas.
func TestASlotThatMoved(t *testing.T) {
	d := server.Cluster(t)
	b := over(t, d)
	calls := make([]fcall.Call, 30)
	for i := range calls {
		calls[i] = call(fcall.Acquire, fmt.Sprintf("lock:%d", i))
	}
	for _, o := range b.Send(t.Context(), calls) {
		require.NoError(t, o.Err)
		require.True(t, o.Yes)
	}
	for at := b.homes.Load(); at == nil || at[0] == ""; at = b.homes.Load() { // it was late
		b.learn(t.Context(), "")
	}
	addrs := map[string]bool{}
	for i := range calls {
		calls[i].Verb = fcall.Renew
		to := b.home(t.Context(), b.Redis.Nodes(), calls[i].Key)
		addrs[to.addr] = true
	}
	require.Len(t, addrs, 3)
	moved, addr := new(homes), b.home(t.Context(), b.Redis.Nodes(), "lock:1").addr
	for slot := range moved {
		moved[slot] = addr
	}
	b.homes.Store(moved) // as if all had moved from there
	for _, o := range b.Send(t.Context(), calls) {
		require.NoError(t, o.Err)
		require.True(t, o.Yes)
	}
	for i := range calls {
		r, err := b.Do(t.Context(), calls[i])
		require.NoError(t, err)
		require.True(t, r.Yes)
	}
	b.homes.Store(nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := b.Do(ended, calls[0])
	require.ErrorIs(t, err, context.Canceled)
}

// Redis tells no replica that a slot is on its way. So what its new node was given is lost when the old one
// fails over, even in good order: the replica has the slot, and not the lock. Valkey tells it.
func TestALockIsLostWithTheSourceOfItsMove(t *testing.T) {
	d := server.Cluster(t)
	d.Load(t)
	b, ctx, c := over(t, d), t.Context(), call(fcall.Acquire, "lock:x")
	primaries, err := d.Primaries(ctx)
	require.NoError(t, err)
	at := b.home(ctx, b.Redis.Nodes(), c.Key).addr
	from := primaries[slices.IndexFunc(primaries, func(n *server.Node) bool { return n.Addr == at })]
	to := primaries[slices.IndexFunc(primaries, func(n *server.Node) bool { return n.Addr != at })]
	_, port, _ := strings.Cut(at, ":")
	heir := d.Nodes()[slices.IndexFunc(d.Nodes(), func(n *server.Node) bool { return n.Info(ctx, "replication", "master_port") == port })]
	require.NoError(t, server.BeginMove(ctx, cluster.Slot(c.Key), from, to))
	r, err := b.Do(ctx, c)
	require.NoError(t, err)
	require.True(t, r.Yes)
	require.NoError(t, heir.Failover(ctx))
	granted, err := heir.Do(ctx, "FCALL", functions.Acquire, "1", c.Key, "other", "1000")
	if err == nil {
		_, err = granted.ToInt64()
	}
	require.Equal(t, heir.Info(ctx, "server", "server_name") != "valkey", err == nil, "%v", err)
}

// mute is a client whose nodes do not say which of them has which slots.
type mute struct {
	rueidis.Client
	asked *atomic.Int32
}

func (m mute) Nodes() map[string]rueidis.Client {
	nodes := m.Client.Nodes()
	for addr, node := range nodes {
		nodes[addr] = mute{node, m.asked}
	}
	return nodes
}

func (m mute) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if cmd.Commands()[0] == "CLUSTER" {
		m.asked.Add(1)
		<-ctx.Done()
	}
	return m.Client.Do(ctx, cmd)
}

// While nobody says where the slots are, redirects do, and that is asked once for all calls.
func TestNobodySaysWhereTheSlotsAre(t *testing.T) {
	d := server.Cluster(t)
	b, asked := over(t, d), new(atomic.Int32)
	b.Redis = mute{b.Redis, asked}
	calls := make([]fcall.Call, 30)
	for i := range calls {
		calls[i] = call(fcall.Acquire, fmt.Sprintf("lock:%d", i))
	}
	for _, o := range b.Send(t.Context(), calls) {
		require.NoError(t, o.Err)
		require.True(t, o.Yes)
	}
	require.LessOrEqual(t, int(asked.Load()), len(b.Redis.Nodes()))
}

func TestRedirect(t *testing.T) {
	for text, want := range map[string][2]string{
		"it refuses: MOVED 42 127.0.0.1:7001":        {"MOVED", "127.0.0.1:7001"},
		"it refuses: ASK 42 :7001":                   {"ASK", ":7001"},
		"it refuses: TRYAGAIN Multiple keys ...":     {"TRYAGAIN", ""},
		"it refuses: READONLY You can't write ...":   {"", ""},
		"it refuses: LOADING Redis is loading ASK 1": {"", ""},
	} {
		word, addr := redirect(&fcall.Refusal{Kind: fcall.ErrUnreachable, Text: text})
		require.Equal(t, want, [2]string{word, addr}, text)
	}
	require.Equal(t, "10.0.0.1:7001", address(":7001", "10.0.0.1:7000"))
	require.Equal(t, "[::1]:7001", address("::1:7001", ""))
}
