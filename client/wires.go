package client

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// wires are the connections of a rueidis client that Open made. A silent server keeps rueidis from
// closing them for as long as it waits for answers, and one that is made while the client is closed
// would stay open.
type wires struct {
	closing context.Context // ends dials that are under way
	stop    context.CancelFunc

	mu      sync.Mutex
	open    map[*wire]struct{}
	closed  bool
	renewed time.Time
}

type wire struct {
	net.Conn
	of *wires
}

func newWires() *wires {
	w := &wires{open: map[*wire]struct{}{}}
	w.closing, w.stop = context.WithCancel(context.Background())
	return w
}

// count puts w between rueidis and the network.
func (w *wires) count(option *rueidis.ClientOption) {
	dial, old := option.DialCtxFn, option.DialFn
	if dial == nil && old != nil {
		dial = func(_ context.Context, to string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
			return old(to, d, cfg)
		}
	}
	if dial == nil {
		dial = dialTCP
	}
	option.DialCtxFn = func(ctx context.Context, to string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(w.closing, cancel)()
		conn, err := dial(ctx, to, d, cfg)
		if err != nil {
			return nil, err
		}
		return w.add(conn)
	}
}

func dialTCP(ctx context.Context, to string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
	if cfg != nil {
		return (&tls.Dialer{NetDialer: d, Config: cfg}).DialContext(ctx, "tcp", to)
	}
	return d.DialContext(ctx, "tcp", to)
}

func (w *wires) add(conn net.Conn) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		_ = conn.Close() // nobody uses it
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: net.ErrClosed}
	}
	c := &wire{conn, w}
	w.open[c] = struct{}{}
	return c, nil
}

// Close closes the connection.
func (c *wire) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// renewPause is for connections that lead to a replica again.
const renewPause = time.Second

// renew ends the connections, so that rueidis makes new ones. Their users get an error.
func (w *wires) renew() {
	w.mu.Lock()
	var open []*wire
	if time.Since(w.renewed) >= renewPause {
		w.renewed, open = time.Now(), slices.Collect(maps.Keys(w.open))
	}
	w.mu.Unlock()
	for _, c := range open {
		_ = c.Conn.Close()
	}
}

// close ends all connections, and those that are made later.
func (w *wires) close() {
	w.stop()
	w.mu.Lock()
	w.closed = true
	open := w.open
	w.open = map[*wire]struct{}{}
	w.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close() // its users get the error
	}
}
