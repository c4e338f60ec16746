package redis

import (
	"encoding/hex"
	"math/rand/v2"
	"net"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"
)

// Node is one server. Everything in it is guarded by its mutex.
type Node struct {
	world *World
	addr  string
	index uint64

	mu   sync.Mutex
	cond *sync.Cond // acknowledgements of replicas, the end of a pause, the end of the node
	rng  *rand.Rand

	up, paused bool
	runID      string
	started    time.Time
	clock      clock
	frozenUS   int64 // the time of the call that runs
	conditions [conditions]bool
	refuse     func([]string) Error
	loseReply  func([]string) bool

	sessions map[int64]*session
	users    map[string]*user
	config   map[string]string

	keys     map[string]*entry
	unit     *unit
	sweep    *time.Timer
	sweepAt  int64
	lazy     bool // keys whose time is over are deleted only when somebody looks at them
	tracking map[string]map[*session]bool
	channels map[string][]*session
	shards   map[string][]*session

	libs    map[string]*library
	scripts *library // what EVAL runs in
	running *script
	saved   *image

	replication
	clusterState
	calls int64
	stats map[string]int64 // runs of each command, since CONFIG RESETSTAT
}

func newNode(w *World, addr string, index uint64) *Node {
	n := &Node{world: w, addr: addr, index: index, stats: map[string]int64{}, rng: rand.New(rand.NewPCG(w.opt.Seed, index+1000))}
	n.cond = sync.NewCond(&n.mu)
	n.replication.feed = &feed{node: n, lag: w.opt.Lag}
	n.start()
	return n
}

// start gives the node the memory of a new process.
func (n *Node) start() {
	n.up, n.started = true, time.Now()
	n.runID, n.replID = n.hexID(), n.hexID()
	n.sessions, n.keys, n.libs = map[int64]*session{}, map[string]*entry{}, map[string]*library{}
	n.tracking = map[string]map[*session]bool{}
	n.channels, n.shards = map[string][]*session{}, map[string][]*session{}
	n.conditions, n.scripts = [conditions]bool{}, nil
	if n.users == nil {
		n.users = map[string]*user{"default": allPowerful()}
	}
	if n.config == nil {
		n.config = defaultConfig()
	}
}

func (n *Node) hexID() string {
	b := make([]byte, 20)
	for i := range b {
		b[i] = byte(n.rng.IntN(256))
	}
	return hex.EncodeToString(b)
}

// Addr returns the node's "host:port".
func (n *Node) Addr() string { return n.addr }

func (n *Node) hostPort() (string, int) {
	host, port, err := net.SplitHostPort(n.addr)
	number, err2 := strconv.Atoi(port)
	if err != nil || err2 != nil {
		panic("redis: the address of a node must be host:port, not " + n.addr)
	}
	return host, number
}

func (n *Node) accepting() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.up
}

// Do runs one command on the node as a client without a network would, and returns its reply: nil,
// string, int64, [Status], [Error] or []any of those.
func (n *Node) Do(args ...string) any {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.up {
		return Error("ERR the node is down")
	}
	s := &session{node: n, user: n.users["default"], internal: true, readonly: true}
	return plainReply(n.execute(s, args))
}

func plainReply(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainReply(v[i])
		}
		return out
	case pairs:
		return plainReply([]any(v))
	case push:
		return plainReply([]any(v))
	case several:
		return plainReply([]any(v))
	case nilArray, noReply:
		return nil
	case waitAcks:
		return int64(v.node.ackedBy(v.offset))
	}
	return v
}

// Calls returns how many commands the node has run.
func (n *Node) Calls() int64 { n.mu.Lock(); defer n.mu.Unlock(); return n.calls }

// Hash returns a copy of a key's fields, nil if it is no hash. It touches nothing.
func (n *Node) Hash(key string) map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.keys[key].fields()
}

// Kill ends the server process: its connections are closed, its memory is lost. New connections are
// refused.
func (n *Node) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop()
}

func (n *Node) stop() {
	n.up, n.paused = false, false
	for _, s := range n.sortedSessions() {
		s.end()
	}
	if n.sweep != nil {
		n.sweep.Stop()
		n.sweepAt = 0
	}
	n.feed.drop()
	n.cond.Broadcast()
}

func (n *Node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop()
	n.replicas = nil
	n.feed.stop(true)
}

// Pause stops the process as SIGSTOP does: connections stay and are still accepted, nothing is
// answered.
func (n *Node) Pause() { n.mu.Lock(); n.paused = true; n.mu.Unlock() }

// Continue ends a Pause: what is in the sockets is executed.
func (n *Node) Continue() {
	n.mu.Lock()
	n.paused = false
	n.cond.Broadcast()
	n.mu.Unlock()
	n.drain()
}

// KillClients closes the connections of clients, all of them or those that match. It returns how
// many.
func (n *Node) KillClients(match func(c Client) bool) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	ended := 0
	for _, s := range n.sortedSessions() {
		if match == nil || match(s.client()) {
			s.end()
			ended++
		}
	}
	return ended
}

// Client describes a connection.
type Client struct {
	ID         int64
	Remote     string
	Subscribed bool
	Tracking   bool
}

// Clients returns the connections, the oldest first.
func (n *Node) Clients() []Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []Client
	for _, s := range n.sortedSessions() {
		out = append(out, s.client())
	}
	return out
}

func (n *Node) sortedSessions() []*session {
	out := make([]*session, 0, len(n.sessions))
	for _, s := range n.sessions {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *session) int { return int(a.id - b.id) })
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
