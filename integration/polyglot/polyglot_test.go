package polyglot

import (
	"context"
	"flag"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	_ "github.com/holdfast-go/holdfast/integration/server/container" // servers may be containers
)

const forEver = "-1"

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // tests here wait more than they compute
	goleak.VerifyTestMain(m)
}

// bed is a server with the library, and a Go client of it.
type bed struct {
	node *server.Node
	host string
	port string
	c    *client.Client
}

func newBed(t *testing.T) *bed {
	t.Helper()
	d := server.Single(t, server.Owned())
	b := &bed{node: d.Nodes()[0]}
	do(t, b.node, "FUNCTION", "LOAD", "REPLACE", functions.Source)
	b.host, b.port = place(t, b.node.Addr)
	var err error
	b.c, err = client.Open(d.ClientOption(), client.Config{})
	require.NoError(t, err)
	t.Cleanup(b.c.Close)
	return b
}

func place(t *testing.T, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return host, port
}

func do(t *testing.T, n *server.Node, command ...string) rueidis.RedisMessage {
	t.Helper()
	m, err := n.Do(context.Background(), command...)
	require.NoError(t, err)
	return m
}

// hold starts a worker that takes a lock, says so, and has it until it is told to release it.
func (b *bed) hold(t *testing.T, w worker, lock string, lease, wait string) *running {
	t.Helper()
	return w.start(t, b.host, b.port, "hold", lock, lease, wait)
}

// waits blocks until so many wait for a lock.
func (b *bed) waits(t *testing.T, lock string, waiters int) {
	t.Helper()
	require.Eventually(t, func() bool {
		info, err := b.c.Inspect(t.Context(), lock)
		return err == nil && info.Waiters == waiters
	}, within, 5*time.Millisecond)
}

// All languages and Go work on one counter at once. Without the lock they would lose counts, for
// each adds by GET and SET.
func TestMutualExclusionAmongLanguages(t *testing.T) {
	all := workers(t)
	b := newBed(t)
	const rounds = 20
	do(t, b.node, "SET", "counter", "0")
	var started []*running
	for _, w := range all {
		started = append(started,
			w.start(t, b.host, b.port, "work", "poly", "20000", forEver, "counter", strconv.Itoa(rounds)))
	}
	tokens := b.work(t, rounds)
	for _, r := range started {
		var own []int64
		for line := r.next(); line != nil; line = r.next() {
			own = append(own, number(t, line[0]))
		}
		require.Len(t, own, rounds, "%s: %s", r.name, r.stderr.String())
		require.True(t, slices.IsSorted(own), "%s got the tokens %v", r.name, own)
		tokens = append(tokens, own...)
	}
	reply := do(t, b.node, "GET", "counter")
	got, err := reply.ToString()
	require.NoError(t, err)
	require.Equal(t, strconv.Itoa(len(tokens)), got)
	slices.Sort(tokens)
	require.Len(t, slices.Compact(tokens), rounds*(len(all)+1), "no token comes twice")
}

func (b *bed) work(t *testing.T, rounds int) (tokens []int64) {
	t.Helper()
	for range rounds {
		l, err := b.c.Acquire(t.Context(), "poly")
		require.NoError(t, err)
		reply := do(t, b.node, "GET", "counter")
		n, err := reply.AsInt64()
		require.NoError(t, err)
		do(t, b.node, "SET", "counter", strconv.FormatInt(n+1, 10))
		tokens = append(tokens, l.Fence())
		require.NoError(t, l.Release(t.Context()))
	}
	return tokens
}

// each runs a test for each language, on one server.
func each(t *testing.T, test func(t *testing.T, b *bed, w worker)) {
	all := workers(t)
	b := newBed(t)
	for _, w := range all {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel() // each has a lock of its own
			test(t, b, w)
		})
	}
}

// Go holds, the language waits, and gets it when Go gives it back; and the other way round.
func TestHandOverFromGoAndBack(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		l, err := b.c.Acquire(t.Context(), w.name)
		require.NoError(t, err)
		r := b.hold(t, w, w.name, "20000", forEver)
		b.waits(t, w.name, 1)
		require.NoError(t, l.Release(t.Context()))
		token := r.held()
		require.Greater(t, token, l.Fence())

		back := make(chan int64, 1)
		go func() {
			defer close(back)
			if l, err := b.c.Acquire(t.Context(), w.name); err == nil {
				back <- l.Fence()
				_ = l.Release(t.Context())
			}
		}()
		b.waits(t, w.name, 1)
		r.release()
		require.Greater(t, <-back, token)
	})
}

// A holder that is killed keeps the lock for what is left of its lease, and no longer.
func TestAHolderIsKilled(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		const lease = 5 * time.Second
		r := b.hold(t, w, w.name, "5000", "0")
		token := r.held()
		r.kill()
		killed := time.Now()
		l, err := b.c.Acquire(t.Context(), w.name)
		require.NoError(t, err)
		require.Less(t, time.Since(killed), lease+2*time.Second)
		require.Greater(t, l.Fence(), token)
		require.NoError(t, l.Release(t.Context()))
	})
}

// A lock is held for longer than its lease: something renews it.
func TestALockIsRenewed(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		r := b.hold(t, w, w.name, "9000", "0")
		token := r.held()
		ctx, cancel := context.WithTimeout(t.Context(), 13*time.Second)
		defer cancel()
		l, err := b.c.Acquire(ctx, w.name)
		require.ErrorIs(t, err, client.ErrTimeout, "%v", l)
		info, err := b.c.Inspect(t.Context(), w.name)
		require.NoError(t, err)
		require.Equal(t, token, info.Fence)
		r.release()
	})
}

// A holder whose lock is broken is told, by its next renewal.
func TestALockIsBroken(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		r := b.hold(t, w, w.name, "6000", "0")
		r.held()
		_, err := b.c.Break(t.Context(), w.name, "for the test")
		require.NoError(t, err)
		r.expect("lost")
	})
}

// A holder behind a silent server is told before its lease can end there, by its own clock.
func TestTheServerIsSilent(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		p := server.NewProxy(t, b.node.Addr)
		host, port := place(t, p.Addr)
		r := w.start(t, host, port, "hold", w.name, "6000", "0")
		r.held()
		p.Stall()
		defer p.Resume()
		info, err := b.c.Inspect(t.Context(), w.name)
		require.NoError(t, err)
		ends := time.Now().Add(info.Remaining)
		r.expect("lost")
		// The margin is 62 ms; the rest is what a busy machine needs to tell us.
		require.Less(t, time.Since(ends), 500*time.Millisecond, "the holder was told when the lease had ended")
	})
}

// A waiter that gives up leaves the line, and takes nothing with it.
func TestAWaitIsGivenUp(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		l, err := b.c.Acquire(t.Context(), w.name)
		require.NoError(t, err)
		b.hold(t, w, w.name, "20000", "700").expect("busy")
		b.waits(t, w.name, 0)
		require.NoError(t, l.Release(t.Context()))
		info, err := b.c.Inspect(t.Context(), w.name)
		require.NoError(t, err)
		require.False(t, info.Held)
	})
}

// The reply to the call that takes the lock is lost, and later the one that gives it back.
func TestRepliesAreLost(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		p := server.NewProxy(t, b.node.Addr)
		host, port := place(t, p.Addr)
		p.DropReplies(1, "holdfast_acquire")
		r := w.start(t, host, port, "hold", w.name, "20000", "0")
		r.held()
		require.Equal(t, 1, p.Dropped())
		p.DropReplies(1, "holdfast_release")
		r.release()
		require.Equal(t, 1, p.Dropped())
		info, err := b.c.Inspect(t.Context(), w.name)
		require.NoError(t, err)
		require.False(t, info.Held)
	})
}

// All connections of a waiter are cut, also that on which it is told of a grant. It asks again.
func TestTheConnectionsOfAWaiterAreCut(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		p := server.NewProxy(t, b.node.Addr)
		host, port := place(t, p.Addr)
		l, err := b.c.Acquire(t.Context(), w.name)
		require.NoError(t, err)
		r := w.start(t, host, port, "hold", w.name, "20000", forEver)
		b.waits(t, w.name, 1)
		p.Cut()
		require.NoError(t, l.Release(t.Context()))
		require.Greater(t, r.held(), l.Fence())
		r.release()
	})
}

// A grant crosses with giving up: the lock is free again at once, not after a lease.
func TestAGrantCrossesWithGivingUp(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		p := server.NewProxy(t, b.node.Addr)
		host, port := place(t, p.Addr)
		l, err := b.c.Acquire(t.Context(), w.name)
		require.NoError(t, err)
		r := w.start(t, host, port, "hold", w.name, "20000", "3000")
		b.waits(t, w.name, 1)
		p.DropReplies(1000, "holdfast_renew") // a grant is not confirmed, as far as it knows
		require.NoError(t, l.Release(t.Context()))
		for line := r.next(); line != nil; line = r.next() {
			if line[0] == "held" { // it was told in time: then this is a hand-over
				r.release()
			}
		}
		start := time.Now()
		l, err = b.c.Acquire(t.Context(), w.name)
		require.NoError(t, err)
		require.Less(t, time.Since(start), 5*time.Second)
		require.NoError(t, l.Release(t.Context()))
	})
}
