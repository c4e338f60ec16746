package redis

import (
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
	// Lag is how long a write takes to a replica. Default 300 us.
	Lag time.Duration
	// Gossip is how long the news of a changed topology takes to the other nodes of a Cluster, plus
	// up to as much again. Default 10 ms.
	Gossip time.Duration
	// Step is by how much Redis 7.0's clock goes on within a function at each TIME, PEXPIREAT,
	// PEXPIRE and SET PX. Default 0.
	Step time.Duration
	// Early deletes expired keys actively in the very millisecond that PEXPIREAT names, as Redis
	// 8.0.2 may. The default is late: 1 to 101 ms after it. Commands do not see the key from the
	// millisecond after it, either way.
	Early bool
	// MaxClients bounds the connections of a node. Default 10,000.
	MaxClients int

	// ConfigFile is what INFO says of it.
	ConfigFile string

	// Unmodelled hears of each command or option that this package does not model; the caller gets
	// an error reply too.
	Unmodelled func(node, text string)
	// Hooks watch what the nodes do.
	Hooks Hooks
}

// World is the network and the nodes in it.
type World struct {
	opt Options

	mu     sync.Mutex
	nodes  map[string]*Node
	order  []*Node
	links  []*wire
	rules  []rule
	serial uint64 // of links
	dials  int
	rng    *rand.Rand
	closed bool

	clusterMu sync.Mutex // orders changes of the topology; nodes' mutexes are taken below it
	topo      *topology  // the newest
	sentinels []*Node
	master    *sentinelSet
}

// wire is a link in use.
type wire struct {
	host           string
	node           *Node
	client, server *link
	hungUp, served bool // the client's end was closed; the server's end is one of its connections
}

// New returns an empty network.
func New(opt Options) *World {
	if opt.Lag == 0 {
		opt.Lag = 300 * time.Microsecond
	}
	if opt.Gossip == 0 {
		opt.Gossip = 10 * time.Millisecond
	}
	if opt.MaxClients == 0 {
		opt.MaxClients = 10_000
	}
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

// Dials returns how many connections were tried.
func (w *World) Dials() int { w.mu.Lock(); defer w.mu.Unlock(); return w.dials }

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

// Name returns the host's name.
func (h *Host) Name() string { return h.name }

// Dial connects to a node. It fits rueidis.ClientOption.DialCtxFn.
func (h *Host) Dial(ctx context.Context, to string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return h.world.dial(ctx, h.name, to, d)
}

// Dial connects to a node from a host without a name. It fits rueidis.ClientOption.DialCtxFn.
func (w *World) Dial(ctx context.Context, to string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return w.dial(ctx, "", to, d)
}

// dial gives up when the dialer would.
func (w *World) dial(ctx context.Context, host, to string, d *net.Dialer) (net.Conn, error) {
	if d != nil && d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d.Timeout, errTimeout)
		defer cancel()
	}
	w.mu.Lock()
	w.dials++
	w.serial++
	id := w.serial
	n := w.nodes[to]
	latency := w.opt.Latency
	state := w.state(Path{host, n})
	w.mu.Unlock()
	if d := state.delay; d > 0 {
		latency = d
	}
	from := fmt.Sprintf("%s:%d", orUnnamed(host), id)
	refused := netError("dial", from, to, syscall.ECONNREFUSED)
	if n == nil {
		return nil, refused
	}
	for again := time.Second; state.stops(); again *= 2 { // a SYN that nobody answers; TCP sends it again
		if err := sleep(ctx, again); err != nil {
			return nil, dialError(from, to, err)
		}
		w.mu.Lock()
		state = w.state(Path{host, n})
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
	return w.connect(host, from, n, latency, id, refused)
}

func (w *World) connect(host, from string, n *Node, latency time.Duration, id uint64, refused error) (net.Conn, error) {
	client, server := newLink(from, n.addr, latency, w.opt.Seed, id)
	l := &wire{host: host, node: n, client: client, server: server}
	client.closed = sync.OnceFunc(func() { w.end(l, &l.hungUp, true) })
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, refused
	}
	state := w.state(Path{host, n})
	l.apply(state)
	l.served = !state.silent
	w.links = append(w.links, l)
	w.mu.Unlock()
	if state.silent { // accepted by the kernel, never by the server
		return client, nil
	}
	if !n.serve(server, id, func() { w.end(l, &l.served, false) }) {
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

// errTimeout is what the net package says when a dial takes too long.
var errTimeout = os.ErrDeadlineExceeded

func orUnnamed(host string) string {
	if host == "" {
		return "client"
	}
	return host
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
