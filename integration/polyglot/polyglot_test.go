// SPDX-License-Identifier: Apache-2.0

package polyglot

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/server"
)

const forEver = "-1"

// bed is the server that all tests share, with the library on it, a Go client of it, and where what is
// compiled is put.
var bed struct {
	node       *server.Node
	host, port string
	c          *client.Client
	dir        string
}

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "12") // tests here wait more than they compute
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(leaks.Check(code))
}

func run(m *testing.M) (code int, err error) {
	if bed.dir, err = os.MkdirTemp("", "polyglot"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bed.dir)) }()
	d, err := server.Start(context.Background(), server.Spec{Kind: server.KindSingle, Own: true})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.LoadFunctions(context.Background()); err != nil {
		return 0, err
	}
	bed.node = d.Nodes()[0]
	if bed.host, bed.port, err = net.SplitHostPort(bed.node.Addr); err != nil {
		return 0, err
	}
	if bed.c, err = client.Open(d.ClientOption(), client.Config{}); err != nil {
		return 0, err
	}
	defer bed.c.Close()
	return m.Run(), nil
}

// through returns host and port of a proxy to the server.
func through(t *testing.T) (p *server.Proxy, host, port string) {
	t.Helper()
	p = server.NewProxy(t, bed.node.Addr)
	host, port, err := net.SplitHostPort(p.Addr)
	require.NoError(t, err)
	return p, host, port
}

func do(t *testing.T, command ...string) rueidis.RedisMessage {
	t.Helper()
	m, err := bed.node.Do(context.Background(), command...)
	require.NoError(t, err)
	return m
}

func inspect(t *testing.T, lock string) client.Info {
	t.Helper()
	info, err := bed.c.Inspect(t.Context(), lock)
	require.NoError(t, err)
	return info
}

func acquire(t *testing.T, lock string) *client.Lock {
	t.Helper()
	l, err := bed.c.Acquire(t.Context(), lock)
	require.NoError(t, err)
	return l
}

func release(t *testing.T, l *client.Lock) {
	t.Helper()
	require.NoError(t, l.Release(t.Context()))
}

// named requires that the holder's name says on which host and in which process it is.
func named(t *testing.T, lock string, r *running) {
	t.Helper()
	host, err := os.Hostname()
	require.NoError(t, err)
	holder := inspect(t, lock).Holder
	require.Equal(t, host, holder.Host, holder.Owner)
	group, err := syscall.Getpgid(holder.PID) // the shell's holder is a child of the worker
	require.NoError(t, err, holder.Owner)
	require.Equal(t, r.cmd.Process.Pid, group, holder.Owner)
}

// hold starts a worker that takes the test's lock, says so, and has it until it is told to release it.
func (w worker) hold(t *testing.T, lease, wait string) *running {
	t.Helper()
	return w.start(t, bed.host, bed.port, "hold", t.Name(), lease, wait)
}

// waits blocks until so many wait for a lock.
func waits(t *testing.T, c *client.Client, lock string, waiters int) {
	t.Helper()
	require.Eventually(t, func() bool {
		info, err := c.Inspect(t.Context(), lock)
		return err == nil && info.Waiters == waiters
	}, within, 10*time.Millisecond)
}

// renewed blocks until a lock is renewed.
func renewed(t *testing.T, lock string) {
	t.Helper()
	was := inspect(t, lock)
	require.Eventually(t, func() bool {
		info, err := bed.c.Inspect(t.Context(), lock)
		longer := err == nil && info.Fence == was.Fence && info.Remaining > was.Remaining
		was = info
		return longer
	}, within, 10*time.Millisecond)
}

// All languages and Go work on one counter at once. Without the lock they would lose counts, for
// each adds by GET and SET.
func TestMutualExclusionAmongLanguages(t *testing.T) {
	t.Parallel()
	all := workers(t)
	const rounds = 10
	do(t, "SET", "counter", "0")
	var started []*running
	for _, w := range all {
		started = append(started,
			w.start(t, bed.host, bed.port, "work", "poly", "20000", forEver, "counter", strconv.Itoa(rounds)))
	}
	var tokens []int64
	for range rounds {
		l := acquire(t, "poly")
		reply := do(t, "GET", "counter")
		n, err := reply.AsInt64()
		require.NoError(t, err)
		do(t, "SET", "counter", strconv.FormatInt(n+1, 10))
		tokens = append(tokens, l.Fence())
		release(t, l)
	}
	for _, r := range started {
		var own []int64
		for line := r.next(); line != nil; line = r.next() {
			own = append(own, number(t, line[0]))
		}
		require.Len(t, own, rounds, "%s: %s", r.name, r.stderr.String())
		require.True(t, slices.IsSorted(own), "%s got the tokens %v", r.name, own)
		tokens = append(tokens, own...)
	}
	reply := do(t, "GET", "counter")
	got, err := reply.ToString()
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(len(tokens)), got)
	slices.Sort(tokens)
	require.Len(t, slices.Compact(tokens), rounds*(len(all)+1), "no token comes twice")
}

// each runs a test for each language, all at once: each has a lock of its own, with the test's name.
func each(t *testing.T, test func(t *testing.T, w worker)) {
	for _, w := range workers(t) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

// Something renews a lock, and again: a holder whose lock is broken is told by the next renewal.
func TestALockIsRenewedAndBroken(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w worker) {
		r := w.hold(t, "15000", "0")
		token := r.held()
		renewed(t, t.Name())
		require.Equal(t, token, inspect(t, t.Name()).Fence)
		_, err := bed.c.Break(t.Context(), t.Name(), "for the test")
		require.NoError(t, err)
		r.expect("lost")
	})
}

// A holder behind a silent server is told before its lease can end there, by its own clock. It is not
// parallel to other tests, because it looks at the time.
func TestTheServerIsSilent(t *testing.T) {
	each(t, func(t *testing.T, w worker) {
		p, host, port := through(t)
		r := w.start(t, host, port, "hold", t.Name(), "4000", "0")
		r.held()
		p.Stall()
		defer p.Resume()
		ends := time.Now().Add(inspect(t, t.Name()).Remaining)
		r.expect("lost")
		// The margin is 42 ms; the rest is what a busy machine needs to tell us.
		require.Less(t, time.Since(ends), 3*time.Second, "the holder was told when the lease had ended")
	})
}

// A waiter that gives up leaves the line, and takes nothing with it. The holder's owner may be any bytes.
func TestAWaitIsGivenUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w worker) {
		const owner = "\xff\xfe"
		most := map[string]int{"c": 400}[w.name] // else a channel cannot tell of a name that is longer than this
		name := t.Name() + strings.Repeat("n", cmp.Or(most, 500)-len(t.Name()))
		do(t, "FCALL", "holdfast_acquire", "1", "lock:"+name, owner, "60000")
		w.start(t, bed.host, bed.port, "hold", name, "20000", "700").expect("busy")
		waits(t, bed.c, name, 0)
		do(t, "FCALL", "holdfast_release", "1", "lock:"+name, owner)
		require.False(t, inspect(t, name).Held)
	})
}

// The reply to the call that takes the lock is lost, and later the one that gives it back. A release without any reply
// does not say that it was done.
func TestRepliesAreLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w worker) {
		p, host, port := through(t)
		p.DropReplies(1, "holdfast_acquire")
		r := w.start(t, host, port, "hold", t.Name(), "20000", "0")
		r.held()
		require.Equal(t, 1, p.Dropped())
		p.DropReplies(1, "holdfast_release")
		r.release()
		require.Equal(t, 1, p.Dropped())
		require.False(t, inspect(t, t.Name()).Held)

		r = w.start(t, host, port, "hold", t.Name(), "20000", "0")
		r.held()
		p.DropReplies(9, "holdfast_release")
		require.NoError(t, r.stdin.Close())
		require.Nil(t, r.next(), w.name)
	})
}

// All connections of a waiter are cut, also that on which it is told of a grant. It asks again.
func TestTheConnectionsOfAWaiterAreCut(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w worker) {
		p, host, port := through(t)
		l := acquire(t, t.Name())
		r := w.start(t, host, port, "hold", t.Name(), "20000", forEver)
		waits(t, bed.c, t.Name(), 1)
		p.Cut()
		release(t, l)
		require.Greater(t, r.held(), l.Fence())
		r.release()
	})
}

// A grant crosses with giving up: the lock is free again soon, not after a lease.
func TestAGrantCrossesWithGivingUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w worker) {
		p, host, port := through(t)
		l := acquire(t, t.Name())
		r := w.start(t, host, port, "hold", t.Name(), "20000", "3000")
		waits(t, bed.c, t.Name(), 1)
		p.DropReplies(1000, "holdfast_wait") // a grant is not confirmed, as far as it knows
		release(t, l)
		for line := r.next(); line != nil; line = r.next() {
			if line[0] == "held" { // it was told in time: then this is a hand-over
				r.release()
			}
		}
		// Provisional, or given back: no lease of 20 s, which nobody renews.
		require.Less(t, inspect(t, t.Name()).Remaining, 5*time.Second)
		release(t, acquire(t, t.Name()))
	})
}

// What others publish on a waiter's channel gives it nothing, and does not end its wait.
func TestNoiseOnTheChannel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w worker) {
		l := acquire(t, t.Name())
		r := w.hold(t, "20000", forEver)
		waits(t, bed.c, t.Name(), 1)
		key := "lock:" + t.Name()
		m := do(t, "PUBSUB", "SHARDCHANNELS", "lock:{"+key+"}:*")
		channels, err := (&m).AsStrSlice()
		require.NoError(t, err)
		for _, channel := range channels { // none where it polls
			owner := strings.TrimPrefix(channel, "lock:{"+key+"}:")
			for _, noise := range []string{"", "\xff\xfe", "look " + owner, "1 2 3", "x y z 32 " + owner + " " + key,
				"9007199254740991 1 1 32 " + owner + " lock:other", "9007199254740991 1 1 5 other " + key,
				"9007199254740991 1 1 32 " + owner + " " + key} {
				do(t, "SPUBLISH", channel, noise)
			}
		}
		require.Equal(t, l.Owner(), inspect(t, t.Name()).Holder.Owner)
		release(t, l)
		require.Greater(t, r.held(), l.Fence())
		named(t, t.Name(), r)
		r.release()
	})
}

// The modules that do so on a Cluster, as README.md says, wait for a lock there and hold it. The slots of
// these locks are on their way to the server that they are given: others send them there by ASK.
func TestLocksOfACluster(t *testing.T) {
	t.Parallel()
	able := map[string]string{"python": "a", "asyncio": "b", "sh": "c"}
	if !slices.ContainsFunc(workers(t), func(w worker) bool { return able[w.name] != "" }) {
		t.Skip("no language that can use a Cluster is here")
	}
	d := server.Cluster(t)
	host, port, err := net.SplitHostPort(d.Nodes()[0].Addr)
	require.NoError(t, err)
	require.NoError(t, d.LoadFunctions(t.Context()))
	c, err := client.Open(d.ClientOption(), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for _, w := range workers(t) {
		lock := able[w.name]
		if lock == "" {
			continue
		}
		slot := cluster.Slot("lock:" + lock)
		require.Greater(t, slot, uint16(5460))
		require.NoError(t, server.BeginMove(t.Context(), slot, d.Nodes()[slot/5461], d.Nodes()[0]))
		w.env = append(slices.Clone(w.env), "CLUSTER=1")
		l, err := c.Acquire(t.Context(), lock)
		require.NoError(t, err)
		r := w.start(t, host, port, "hold", lock, "20000", forEver)
		waits(t, c, lock, 1)
		release(t, l)
		require.Greater(t, r.held(), l.Fence())
		r.release()
	}
}

// beside returns the worker with LIMIT or SHARED in its environment.
func (w worker) beside(how ...string) worker {
	w.env = append(slices.Clone(w.env), how...)
	return w
}

// eachThree runs a test for each language and the two behind it in the list.
func eachThree(t *testing.T, test func(t *testing.T, a, b, c worker)) {
	all := workers(t)
	each(t, func(t *testing.T, w worker) {
		i := slices.IndexFunc(all, func(o worker) bool { return o.name == w.name })
		test(t, w, all[(i+1)%len(all)], all[(i+2)%len(all)])
	})
}

// Two hold a lock with a limit of two. The third waits, and gets the slot that becomes free.
func TestAtMostTwo(t *testing.T) {
	t.Parallel()
	eachThree(t, func(t *testing.T, a, b, c worker) {
		one := a.beside("LIMIT=2").hold(t, "60000", "0")
		first, slot := one.heldIn()
		require.Equal(t, int64(1), slot)
		second, slot := b.beside("LIMIT=2").hold(t, "60000", "0").heldIn()
		require.Equal(t, int64(2), slot)
		three := c.beside("LIMIT=2").hold(t, "60000", forEver)
		waits(t, bed.c, t.Name(), 1)
		one.release()
		third, slot := three.heldIn()
		require.Equal(t, int64(1), slot)
		require.True(t, slices.IsSorted([]int64{first, second, third}))
		three.release()
		require.Equal(t, 1, inspect(t, t.Name()).Holds)
	})
}

// Two share a lock. One who wants it alone waits until both have left.
func TestReadersAndAWriter(t *testing.T) {
	t.Parallel()
	eachThree(t, func(t *testing.T, a, b, c worker) {
		one, two := a.beside("SHARED=1").hold(t, "60000", "0"), b.beside("SHARED=1").hold(t, "20000", "0")
		_, first := one.heldIn()
		_, second := two.heldIn()
		require.ElementsMatch(t, []int64{1, 2}, []int64{first, second})
		alone := c.hold(t, "60000", forEver)
		waits(t, bed.c, t.Name(), 1)
		one.release()
		info := inspect(t, t.Name())
		require.Equal(t, 1, info.Holds)
		require.Equal(t, 1, info.Waiters)
		two.release()
		_, slot := alone.heldIn()
		require.Zero(t, slot)
		alone.release()
	})
}
