// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"cmp"
	"slices"
	"time"
)

// Path is where a fault of the network is: between a host and a node. The empty Host is all hosts,
// the nil Node all nodes.
type Path struct {
	Host string
	Node *Node
}

func (p Path) covers(q Path) bool {
	return (p.Host == "" || p.Host == q.Host) && (p.Node == nil || p.Node == q.Node)
}

// Direction is the way of packets that a fault touches.
type Direction int

const (
	Both     Direction = iota
	ToServer           // requests
	ToClient           // replies and messages
)

// rule is a fault that new connections suffer from too: a client that dials again is not to escape.
type rule struct {
	path   Path
	change func(*pathState)
}

// pathState is what all the rules of a path come to.
type pathState struct {
	stalled        [3]bool
	refuse, silent bool
	delay          time.Duration
}

// stops reports whether a new connection cannot be made.
func (s *pathState) stops() bool { return s.stalled != [3]bool{} }

// state is called with w.mu held.
func (w *World) state(p Path) pathState {
	var s pathState
	for _, r := range w.rules {
		if r.path.covers(p) {
			r.change(&s)
		}
	}
	return s
}

func (l *wire) apply(s pathState) {
	l.client.out.setStalled(s.stalled[Both] || s.stalled[ToServer])
	l.client.in.setStalled(s.stalled[Both] || s.stalled[ToClient])
	latency := cmp.Or(s.delay, l.Node.world.opt.Latency)
	l.client.out.setLatency(latency)
	l.client.in.setLatency(latency)
}

// rule adds a rule and applies it to the links that are there.
func (w *World) rule(p Path, change func(*pathState)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rules = append(w.rules, rule{p, change})
	for _, l := range w.matching(p) {
		l.apply(w.state(l.Path))
	}
}

// Stall stops one or both directions. What is written is kept. New connections hang in their dial,
// and are made after a Resume when TCP would try again: 1, 3, 7 and so on seconds after the first try.
func (w *World) Stall(p Path, d Direction) { w.rule(p, func(s *pathState) { s.stalled[d] = true }) }

// Resume ends all stalls of a path, and what was written meanwhile is delivered.
func (w *World) Resume(p Path) { w.rule(p, func(s *pathState) { s.stalled = [3]bool{} }) }

// Drop ends all stalls of a path. What was written meanwhile is lost, so its connections are reset.
func (w *World) Drop(p Path) {
	w.Reset(p)
	w.Resume(p)
}

// Reset resets the connections that are there. New ones work.
func (w *World) Reset(p Path) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.matching(p) {
		l.client.reset()
	}
}

// Refuse makes new connections fail with 'connection refused', or no longer.
func (w *World) Refuse(p Path, on bool) { w.rule(p, func(s *pathState) { s.refuse = on }) }

// Silence makes new connections succeed and never be answered, or no longer.
func (w *World) Silence(p Path, on bool) { w.rule(p, func(s *pathState) { s.silent = on }) }

// Delay sets the latency of a path, one way. Zero makes it that of the Options again.
func (w *World) Delay(p Path, d time.Duration) { w.rule(p, func(s *pathState) { s.delay = d }) }

// matching is called with w.mu held.
func (w *World) matching(p Path) []*wire {
	return slices.DeleteFunc(slices.Clone(w.links), func(l *wire) bool { return !p.covers(l.Path) })
}

// Condition is a state of a server in which it refuses commands.
type Condition int

const (
	Full           Condition = iota // maxmemory is reached: OOM
	Loading                         // LOADING
	SaveFailed                      // MISCONF
	TooFewReplicas                  // NOREPLICAS
	Busy                            // a script runs for too long: BUSY
	ClusterDown                     // CLUSTERDOWN
	conditions
)

// Set puts the node into a condition, or out of it.
func (n *Node) Set(c Condition, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conditions[c] = on
}

// Refuse makes the node answer an error to commands that f returns one for, before they run. f gets
// the words of the command as they were sent, and must not block. Nil ends it.
func (n *Node) Refuse(f func(cmd []string) Error) { n.mu.Lock(); n.refuse = f; n.mu.Unlock() }

// LoseReply runs commands that f reports true for, and resets the connection instead of answering.
// Nil ends it.
func (n *Node) LoseReply(f func(cmd []string) bool) { n.mu.Lock(); n.loseReply = f; n.mu.Unlock() }
