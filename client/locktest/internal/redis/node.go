// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"cmp"
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
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
	config   map[string]string

	keys     map[string]*entry
	unit     *unit
	sweep    *time.Timer
	sweepAt  int64
	lazy     bool // keys whose time is over are deleted only when somebody looks at them
	tracking map[string]map[int64]*session
	channels map[string][]*session // subscribers

	libs    map[string]*library
	running *script
	saved   *image

	replication
	clusterState
}

func newNode(w *World, addr string, index uint64) *Node {
	n := &Node{world: w, addr: addr, index: index, rng: rand.New(rand.NewPCG(w.opt.Seed, index+1000))}
	n.cond = sync.NewCond(&n.mu)
	n.config = defaultConfig()
	n.acked, n.feed = map[*Node]int64{}, &feed{node: n}
	n.start()
	return n
}

// start gives the node the memory of a new process.
func (n *Node) start() {
	n.up, n.started = true, time.Now()
	n.runID, n.replID = n.hexID(), n.hexID()
	n.sessions, n.keys, n.libs = map[int64]*session{}, map[string]*entry{}, map[string]*library{}
	n.tracking = map[string]map[int64]*session{}
	n.channels = map[string][]*session{}
	n.conditions = [conditions]bool{}
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
	s := &session{node: n, internal: true, readonly: true}
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
	case waitAcks:
		return int64(v.node.ackedBy(v.offset))
	}
	return v
}

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
	for _, s := range byID(n.sessions) {
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

// KillClients closes the connections of all clients.
func (n *Node) KillClients() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range byID(n.sessions) {
		s.end()
	}
}

// byID returns connections, the oldest first.
func byID(m map[int64]*session) []*session {
	return slices.SortedFunc(maps.Values(m), func(a, b *session) int { return cmp.Compare(a.id, b.id) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// without returns all but one.
func without[T comparable](all []T, one T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return x == one })
}
