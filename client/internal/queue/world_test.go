// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// The walk goes through all states of two processes with a Machine each, their waiters, the network and
// a model of the server with one key, within a budget of what may go wrong.

// role is a waiter of a scope.
type role struct {
	proc       uint8
	try, fresh bool
	until      tick
	terms      *lease.Terms
}

type (
	oid      uint16 // of an owner: of process p they begin at p*1000+1
	tick     int16  // seconds
	budget   map[uint8]uint8
	coverage [Confirming + 1][Close + 1][2]bool // [1]: a try, or about another owner than the queue's, or h's in Held
	scope    struct {
		name   string
		roles  []role
		budget budget
		young  bool // the server's memory, for guards
		acks   bool // a yes to a wait is to be confirmed
		votes  bool // several servers: no line, no message, and a refused owner is used up
		wide   bool // only if asked for
		cells  coverage
	}
)

// Steps. Those up to sGone must happen some time, but for sEnter; the others have a budget, and those from
// sClose on are faults.
const (
	sEnter uint8 = iota
	sRelease
	sReply
	sMessage
	sDoubled // the second time
	sTimer
	sWake
	sExec
	sExecLate
	sExpire // the lease at the server
	sOld    // the memory
	sGone   // the key
	sEnd
	sTick
	sKey // changed
	sClose
	sLoseCall
	sLoseReply
	sLoseMessage
	sDouble
	sLate // a call is overtaken by others
	sLost // the lease by our clock, and with that some time at the server
	sPause
	sDie
	sRefuse
	nSteps
)

var stepNames = strings.Fields("enter release reply message doubled timer wake exec exec-late expire old gone end tick " +
	"key close lose-call lose-reply lose-message double late lost pause die refuse")

type step struct{ op, p, i uint8 }

type list[T any] struct {
	n uint8
	v [6]T
}

func (l *list[T]) all() []T { return l.v[:l.n] }
func (l *list[T]) push(x T) { l.v[l.n] = x; l.n++ }
func (l *list[T]) cut(i uint8) (x T) {
	x, l.n = l.v[i], l.n-1
	copy(l.v[i:], l.v[i+1:])
	return x
}

type (
	// note is an Event on its way.
	note struct {
		kind                          Kind
		late, unknown, confirm, spent bool
		owner                         oid
		token, top                    uint16
		no                            uint64
	}
	call struct {
		op         Op
		guard, min bool
		owner      oid
		token      uint16
		no         uint64 // 0: nobody wants the answer
	}
	spot struct {
		owner      oid
		guard, min bool
	}
	worker struct {
		w, proc     uint8
		live, stale bool // stale: the server's lease is over, and a paused holder cannot know
		owner       oid
		token       uint16
	}
	world struct {
		c        *scope
		q        [2]Machine
		ws       [6]Waiter
		made     [2]oid // owners so far
		lane     [2]list[call]
		rep, msg [2]list[note]
		late     call      // no owner: none
		doubled  note      // the same
		again    list[oid] // undone again after a late call

		holder           oid // at the server
		fence, top, next uint16
		line             list[spot]
		guard, young     bool
		min, safe, sure  bool // of the grant: with a minimum, by an old memory, confirmed
		ending           bool // nobody may know of the grant

		w                    [6]uint8
		recs                 list[worker]
		budget               [nSteps]uint8
		dead, closed, paused [2]bool
		now                  tick
		heard                [2]tick // from here on ghosts, for the checks
		cur, spent           [2]oid
		told                 uint16
		bad                  string
	}
)

const ( // of a waiter
	away uint8 = iota
	waiting
	holds
	done
)

var names = func() (names [2000]string) {
	for i := range names {
		names[i] = string([]byte{byte(i >> 8), byte(i)})
	}
	names[0] = ""
	return names
}()

func idOf(owner string) oid {
	if owner == "" {
		return 0
	}
	return oid(owner[0])<<8 | oid(owner[1])
}

func begin(c *scope) *world {
	w := &world{c: c, young: c.young, next: 1, now: 1, heard: [2]tick{-100, -100}}
	for op, n := range c.budget {
		w.budget[op] = n
	}
	return w
}

// copyTo copies a world, with pointers to its own waiters.
func (w *world) copyTo(n *world) *world {
	*n = *w
	moved := func(x *Waiter) *Waiter {
		if x == nil {
			return nil
		}
		return &n.ws[w.index(x)]
	}
	for p := range n.q {
		m := &n.q[p]
		m.fifo.first, m.call.Waiter = moved(m.fifo.first), moved(m.call.Waiter)
	}
	for i := range n.ws {
		n.ws[i].next, n.ws[i].prev = moved(n.ws[i].next), moved(n.ws[i].prev)
	}
	return n
}

func (w *world) index(x *Waiter) uint8 {
	for i := range w.ws {
		if x == &w.ws[i] {
			return uint8(i)
		}
	}
	panic("a waiter of another world")
}

func procOf(o oid) int { return int(o / 1000) }
func (w *world) fail(format string, args ...any) {
	if w.bad == "" {
		w.bad = fmt.Sprintf(format, args...)
	}
}
func (w *world) over(i uint8) bool  { u := w.c.roles[i].until; return u != 0 && w.now >= u }
func (w *world) used(op uint8) bool { return w.budget[op] < w.c.budget[op] }
func (w *world) standing(o oid) int {
	return slices.IndexFunc(w.line.all(), func(l spot) bool { return l.owner == o })
}
func (w *world) forced(s step) bool {
	return s.op == sEnd && w.over(s.i) || s.op == sLost && w.recs.v[s.i].stale
}
func (w *world) fair(s step) bool   { return s.op > sEnter && s.op < sEnd || w.forced(s) }
func (s step) slow() bool           { return s.op == sTimer || s.op == sExpire || s.op == sGone }
func (h worker) knows(o oid) bool   { return h.owner == o && h.live && !h.stale }
func seconds(t tick) time.Duration  { return time.Duration(t) * time.Second }
func boundOf(x *Waiter) (g, m bool) { return x.Terms.Guard > 0, x.Terms.MinHold > 0 }
