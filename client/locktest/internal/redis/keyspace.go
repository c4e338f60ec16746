// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"maps"
	"time"
)

// entry is a key's value.
type entry struct {
	kind string // string, hash
	str  string
	hash map[string]string
	end  int64 // ms; 0: never
}

func (e *entry) clone() *entry {
	if e == nil {
		return nil
	}
	c := *e
	c.hash = maps.Clone(e.hash)
	return &c
}

// fields is how hooks see a value.
func (e *entry) fields() map[string]string {
	switch {
	case e == nil:
		return nil
	case e.kind == "hash":
		return maps.Clone(e.hash)
	}
	return map[string]string{"": e.str}
}

// unit is what one command, function or transaction changes: it is replicated and shown to the
// hooks as a whole.
type unit struct {
	keys    []string                     // changed, in the order of their first change
	before  map[string]map[string]string // what they were, if the hooks want to know
	expired map[string]bool
	libs    []string   // changed
	told    []*session // have messages to send
}

// changed reports whether replicas have to hear of the unit.
func (u *unit) changed() bool { return len(u.keys)+len(u.libs) > 0 }

// begin starts a unit and freezes the time.
func (n *Node) begin() {
	n.unit = &unit{before: map[string]map[string]string{}, expired: map[string]bool{}}
	n.frozenUS = n.clock.us()
}

func (n *Node) commit() {
	u := n.unit
	n.unit = nil
	if n.primary == nil && u.changed() {
		n.propagate(u)
	}
	if f := n.world.opt.Hooks.Write; f != nil {
		for _, key := range u.keys {
			w := Write{Node: n, Key: key, Before: u.before[key], After: n.keys[key].fields(), Expired: u.expired[key], Replica: n.primary != nil, NowUS: n.frozenUS}
			w.Left = w.Expired && n.topo != nil && !n.serves(slotOf(key))
			if e := n.keys[key]; e != nil {
				w.End = e.end
			}
			f(w)
		}
	}
	for _, s := range u.told {
		if !s.busy { // else it sends its reply first
			s.flush()
		}
	}
}

// nowMS is the time that a key's expiry is judged by: it stands still within a function, on all
// servers.
func (n *Node) nowMS() int64 { return n.frozenUS / 1000 }

// lookup returns a key's value, nil if there is none or its time is over.
func (n *Node) lookup(key string) *entry {
	e := n.keys[key]
	if e == nil || e.end == 0 || n.nowMS() <= e.end {
		return e
	}
	if n.primary == nil { // a replica waits for its primary's DEL
		n.expire(key)
	}
	return nil
}

func (n *Node) expire(key string) {
	n.edit(key)
	n.unit.expired[key] = true
	delete(n.keys, key)
}

// edit announces a change of a key, before it is made.
func (n *Node) edit(key string) {
	n.invalidate(key)
	u := n.unit
	if _, known := u.before[key]; known {
		return
	}
	u.keys, u.before[key] = append(u.keys, key), nil
	if n.world.opt.Hooks.Write != nil {
		u.before[key] = n.keys[key].fields()
	}
}

// setEnd sets when a key expires, and makes sure that the active expiry will look at it.
func (n *Node) setEnd(e *entry, end int64) {
	e.end = end
	if end == 0 || n.primary != nil || n.lazy {
		return
	}
	if at := end + n.activeDelay(); n.sweepAt == 0 || at < n.sweepAt {
		n.arm(at)
	}
}

// activeDelay is how long after its end a key is deleted if nobody touches it.
func (n *Node) activeDelay() int64 {
	if n.world.opt.Early {
		return 0
	}
	return 1 + n.rng.Int64N(101)
}

func (n *Node) arm(at int64) {
	n.sweepAt = at
	d := time.Duration(at*1000-n.clock.us())*time.Microsecond + time.Duration(n.index%997+1)
	if n.clock.drift != 0 {
		d = time.Duration(float64(d) / (1 + n.clock.drift))
	}
	d = max(d, 0)
	if n.sweep == nil {
		n.sweep = time.AfterFunc(d, n.expireActively)
	} else {
		n.sweep.Reset(d)
	}
}

// armSweep sets the timer of the active expiry for the key that ends first.
func (n *Node) armSweep() {
	n.sweepAt = 0
	if n.primary != nil || !n.up || n.lazy {
		return
	}
	first := int64(0)
	for _, e := range n.keys {
		if e.end != 0 && (first == 0 || e.end < first) {
			first = e.end
		}
	}
	if first != 0 {
		n.arm(first + n.activeDelay())
	}
}

func (n *Node) expireActively() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.up || n.primary != nil || n.lazy {
		return
	}
	if n.paused { // it looks again when it goes on
		n.arm(n.clock.us()/1000 + 100)
		return
	}
	n.begin()
	now := n.nowMS()
	for _, key := range sortedKeys(n.keys) {
		if e := n.keys[key]; e.end != 0 && (now > e.end || now == e.end && n.world.opt.Early) {
			n.expire(key)
		}
	}
	n.commit()
	n.armSweep()
}
