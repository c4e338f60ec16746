// SPDX-License-Identifier: Apache-2.0

package dial

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Wires are the connections of a rueidis client. rueidis does not close a connection while it waits
// for answers, and leaves one open that is made during its Close. Unnecessary once its Close
// ends both. Wires are safe for concurrent use.
type Wires struct {
	closing context.Context // ends dials that are under way
	stop    context.CancelFunc
	single  bool // all commands of a node go over one, with room for 1,024
	ended   atomic.Uint32

	mu      sync.Mutex
	open    map[*wire]struct{}
	renewed time.Time
	due     map[string]time.Time // when a sentinel may be dialed once more
}

type wire struct {
	net.Conn
	of *Wires
}

// NewWires returns Wires without a connection.
func NewWires() *Wires {
	w := &Wires{open: map[*wire]struct{}{}, due: map[string]time.Time{}}
	w.closing, w.stop = context.WithCancel(context.Background())
	return w
}

// Ended counts the connections that have ended, for fcall.Config.
func (w *Wires) Ended() *atomic.Uint32 {
	if !w.single {
		return nil
	}
	return &w.ended
}

// count puts w between rueidis and the network.
func (w *Wires) count(option *rueidis.ClientOption) {
	dial, old := option.DialCtxFn, option.DialFn
	if dial == nil && old != nil {
		dial = func(_ context.Context, to string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
			return old(to, d, cfg)
		}
	}
	if dial == nil {
		dial = dialTCP
	}
	sentinels := new(net.Resolver) // as the default one: it marks their dials
	if own := option.Sentinel.Dialer.Resolver; own != nil {
		sentinels.PreferGo, sentinels.StrictErrors, sentinels.Dial = own.PreferGo, own.StrictErrors, own.Dial
	}
	option.Sentinel.Dialer.Resolver = sentinels
	option.DialCtxFn = func(ctx context.Context, to string, d *net.Dialer, cfg *tls.Config) (
		net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(w.closing, cancel)()
		if d != nil && d.Resolver == sentinels {
			w.pace(ctx, to)
		}
		conn, err := dial(ctx, to, d, cfg)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.closing.Err() != nil { // Close, which ends it first, then ends those that are open
			_ = conn.Close() // nobody uses it
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: net.ErrClosed}
		}
		c := &wire{conn, w}
		w.open[c] = struct{}{}
		return c, nil
	}
}

// pace blocks until it is the turn of a dial to a sentinel, or ctx ends. While no primary can be reached, rueidis
// closes the sentinels' connections after each look, and each that it closes begins to look again, for ever and
// beside the others: thousands of dials. Unnecessary once it lets those go that it closed.
func (w *Wires) pace(ctx context.Context, to string) {
	w.mu.Lock()
	now := time.Now()
	at := w.due[to]
	if last := now.Add(-sentinelPause); at.Before(last) {
		at = last // two at once: with RESP2 messages have a connection of their own
	}
	w.due[to] = at.Add(sentinelPause)
	w.mu.Unlock()
	select {
	case <-time.After(at.Sub(now)):
	case <-ctx.Done():
	}
}

func dialTCP(ctx context.Context, to string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
	if cfg != nil {
		return (&tls.Dialer{NetDialer: d, Config: cfg}).DialContext(ctx, "tcp", to)
	}
	return d.DialContext(ctx, "tcp", to)
}

// Close closes the connection.
func (c *wire) Close() error {
	c.of.ended.Add(1)
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Renew ends all connections because the primary was demoted: new ones may lead to its successor.
// Calls under way fail. It does nothing within a second of the last time, unless Close was called.
// Unnecessary once rueidis looks for the primary when a server refuses a write.
func (w *Wires) Renew() {
	w.mu.Lock()
	var open []*wire
	if w.closing.Err() != nil || time.Since(w.renewed) >= renewPause {
		w.renewed, open = time.Now(), slices.Collect(maps.Keys(w.open))
	}
	w.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close() // its users get the error
	}
}

// Close ends all connections and dials, and connections that are made later.
func (w *Wires) Close() {
	w.stop()
	w.Renew()
}

// End closes a client by fn, and its wires where rueidis waits for the answers of a silent server: in
// twice patience at the most.
func End(fn func(), patience time.Duration, w *Wires) {
	closed := make(chan struct{})
	go func() {
		fn()
		close(closed)
	}()
	for range 2 {
		select {
		case <-closed:
		case <-time.After(patience):
		}
		w.Close()
	}
}
