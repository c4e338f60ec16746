package several

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// attackOn is on with hooks that watch every key's TTL, and without the sleeps when the test failed.
func attackOn(t *testing.T, servers int, test func(b *bed)) {
	t.Helper()
	attackSeed(t, servers, 0, test)
}

func attackSeed(t *testing.T, servers int, seed uint64, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var once sync.Once
		opt := redis.Options{Seed: seed, Latency: 200 * time.Microsecond}
		opt.Hooks.Write = func(w redis.Write) {
			if w.After != nil && w.End == 0 {
				once.Do(func() { t.Errorf("a key without a TTL: %s %v", w.Key, w.After) })
			}
		}
		opt.Unmodelled = func(node, text string) { t.Errorf("not modelled: %s", text) }
		b := &bed{T: t, world: redis.New(opt)}
		for i := range servers {
			n := b.world.Node(fmt.Sprintf("s%d:6379", i))
			b.load(n)
			b.nodes = append(b.nodes, n)
		}
		time.Sleep(lease + time.Second)
		test(b)
		time.Sleep(2 * time.Minute)
		b.world.Close()
		time.Sleep(10 * time.Second)
		if dump := leaked(); dump != "" {
			t.Errorf("goroutines are left after Close:\n%s", dump)
		}
	})
}

// leaked returns the stacks of goroutines of the client that are there when everybody has closed.
func leaked() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var out []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "holdfast/client.") || strings.Contains(g, "holdfast/client/internal") || strings.Contains(g, "rueidis.(*pipe)") {
			if !strings.Contains(g, "attack_") && !strings.Contains(g, "synctest.Run") {
				out = append(out, g)
			}
		}
	}
	if len(out) > 3 {
		out = out[:3]
	}
	return strings.Join(out, "\n\n")
}

// line is the server at which the line of a lock stands: it asks by letting somebody wait.
func (b *bed) line(name string) int {
	b.Helper()
	a, c := b.client(client.Config{}), b.client(client.Config{})
	defer a.Close()
	defer c.Close()
	l, err := a.Acquire(b.Context(), name)
	require.NoError(b, err)
	ctx, cancel := context.WithTimeout(b.Context(), 500*time.Millisecond)
	defer cancel()
	done := make(chan bool)
	go func() { defer close(done); _, _ = c.Acquire(ctx, name) }()
	time.Sleep(250 * time.Millisecond)
	at := -1
	for i, n := range b.nodes {
		for f := range n.Hash("lock:" + name) {
			if strings.HasPrefix(f, "w:") {
				at = i
			}
		}
	}
	<-done
	require.NoError(b, l.Release(b.Context()))
	require.GreaterOrEqual(b, at, 0, "nobody waits anywhere")
	time.Sleep(time.Second)
	return at
}

// kinds are the kinds of errors that err is of: the contract says exactly one.
func kinds(err error) (out []string) {
	for name, k := range map[string]error{"busy": client.ErrBusy, "timeout": client.ErrTimeout, "unreachable": client.ErrUnreachable,
		"closed": client.ErrClosed, "lost": client.ErrLost, "invalid": client.ErrInvalid, "canceled": context.Canceled} {
		if errors.Is(err, k) {
			out = append(out, name)
		}
	}
	return out
}

// quick runs f and complains if it takes longer than most.
func (b *bed) quick(what string, most time.Duration, f func()) {
	b.Helper()
	began := time.Now()
	f()
	if d := time.Since(began); d > most {
		b.Errorf("%s took %v, more than %v", what, d, most)
	}
}

// aliasDial dials a server whatever name it is called by.
func aliasDial(h *redis.Host, addr string) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, _ string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		return h.Dial(ctx, addr, d, c)
	}
}
