// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Flavour is the server that a Node imitates, where servers differ.
type Flavour int

const (
	Redis70 Flavour = iota // 7.0.15
	Redis80                // 8.0.2
	Valkey                 // Valkey 8.1.1
)

func (f Flavour) String() string { return [...]string{"redis 7.0", "redis 8.0", "valkey"}[f] }

// Options are the settings of a World. The zero value is a Redis 7.0 with no latency.
type Options struct {
	Seed    uint64
	Flavour Flavour

	// Latency is how long a packet takes, one way, plus up to a quarter of it. Zero: packets arrive
	// at once.
	Latency time.Duration
	// Step is by how much Redis 7.0's clock goes on within a function at each TIME, PEXPIREAT,
	// PEXPIRE and SET PX. Default 0.
	Step time.Duration
	// Early deletes expired keys actively in the very millisecond that PEXPIREAT names, as Redis
	// 8.0.2 may. The default is late: 1 to 101 ms after it. Commands do not see the key from the
	// millisecond after it, either way.
	Early bool

	// Unmodelled hears of each command or option that this package does not model; the caller gets
	// an error reply too.
	Unmodelled func(node, text string)
	// Hooks watch what the nodes do.
	Hooks Hooks
}

const (
	lag    = 300 * time.Microsecond // how long a write takes to a replica
	gossip = 10 * time.Millisecond  // how long the news of a topology takes to others, plus up to as much again
)

// World is the network and the nodes in it.
type World struct {
	opt Options

	mu     sync.Mutex
	nodes  map[string]*Node
	order  []*Node
	links  []*wire
	rules  []rule
	serial uint64 // of links
	rng    *rand.Rand
	closed bool

	clusterMu sync.Mutex // orders changes of the topology; nodes' mutexes are taken below it
	topo      *topology  // the newest
}

// wire is a link in use.
type wire struct {
	Path
	client         *link
	hungUp, served bool // the client's end was closed; the server's end is one of its connections
}

// New returns an empty network.
func New(opt Options) *World {
	return &World{opt: opt, nodes: map[string]*Node{}, rng: rand.New(rand.NewPCG(opt.Seed, 1))}
}

// Node starts a server at "host:port". It panics if there is one already: that is a mistake in the
// test.
func (w *World) Node(addr string) *Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes[addr] != nil {
		panic("redis: two nodes at " + addr)
	}
	n := newNode(w, addr, uint64(len(w.order)))
	w.nodes[addr] = n
	w.order = append(w.order, n)
	return n
}

// Nodes returns all nodes in the order in which they were started.
func (w *World) Nodes() []*Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.order)
}

// Close resets all connections and stops all timers: after it no goroutine of the World is left.
// Nodes accept no more.
func (w *World) Close() {
	w.mu.Lock()
	w.closed = true
	links, nodes := w.links, w.order
	w.links = nil
	w.mu.Unlock()
	for _, n := range nodes {
		n.close()
	}
	for _, l := range links {
		l.client.reset()
	}
}

// Host is a machine that clients run on, so that faults can name it.
type Host struct {
	world *World
	name  string
}

// Host returns the machine of that name.
func (w *World) Host(name string) *Host { return &Host{w, name} }

// Dial connects to a node, and gives up when the dialer would. It fits rueidis.ClientOption.DialCtxFn.
func (h *Host) Dial(ctx context.Context, to string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	if d != nil && d.Timeout > 0 { // the net package says this when a dial takes too long
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d.Timeout, os.ErrDeadlineExceeded)
		defer cancel()
	}
	w := h.world
	w.mu.Lock()
	w.serial++
	id, n := w.serial, w.nodes[to]
	p := Path{h.name, n}
	state := w.state(p)
	w.mu.Unlock()
	from := fmt.Sprintf("%s:%d", cmp.Or(h.name, "client"), id)
	refused := netError("dial", from, to, syscall.ECONNREFUSED)
	if n == nil {
		return nil, refused
	}
	latency := cmp.Or(state.delay, w.opt.Latency)
	for again := time.Second; state.stops(); again *= 2 { // a SYN that nobody answers; TCP sends it again
		if err := sleep(ctx, again); err != nil {
			return nil, dialError(from, to, err)
		}
		w.mu.Lock()
		state = w.state(p)
		w.mu.Unlock()
	}
	if latency > 0 {
		if err := sleep(ctx, 2*latency+time.Duration(id%997)); err != nil {
			return nil, dialError(from, to, err)
		}
	}
	if state.refuse || !n.accepting() {
		return nil, refused
	}
	return w.connect(p, from, id, refused)
}

func (w *World) connect(p Path, from string, id uint64, refused error) (net.Conn, error) {
	client, server := newLink(from, p.Node.addr, w.opt.Seed, id)
	l := &wire{Path: p, client: client}
	client.closed = sync.OnceFunc(func() { w.end(l, &l.hungUp, true) })
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, refused
	}
	state := w.state(p)
	l.apply(state)
	l.served = !state.silent
	w.links = append(w.links, l)
	w.mu.Unlock()
	if state.silent { // accepted by the kernel, never by the server
		return client, nil
	}
	if !p.Node.serve(server, id, func() { w.end(l, &l.served, false) }) {
		client.reset()
		w.end(l, &l.served, false)
		client.closed()
		return nil, refused
	}
	return client, nil
}

// end notes the end of one side of a link. It is forgotten when the other one has ended too: until
// then there may be something in it that a stall holds up.
func (w *World) end(l *wire, side *bool, to bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*side = to
	if i := slices.Index(w.links, l); i >= 0 && l.hungUp && !l.served {
		w.links = slices.Delete(w.links, i, i+1)
	}
}

// dialError is what a dial that was cancelled or took too long returns.
func dialError(from, to string, err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Source: addr(from), Addr: addr(to), Err: err}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// jitter returns a seeded duration from 0 to most.
func (w *World) jitter(most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(most) + 1))
}

func (w *World) unmodelled(n *Node, text string) Error {
	if f := w.opt.Unmodelled; f != nil {
		f(n.addr, text)
	}
	return Error("ERR not modelled by the test's Redis: " + text)
}
