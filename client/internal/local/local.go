// Package local is a line of goroutines for each key: one leads, the others stand behind it, first
// come first served. What is handed from one to the next is the caller's affair, and so is whether
// it is: the policy comes in as functions.
//
// Lines are safe for concurrent use. The functions that are passed in run under the mutex of the
// key's shard: they may take mutexes that come later in the order (see client/doc.go), and must not
// call back.
package local

import (
	"hash/maphash"
	"slices"
	"sync"
)

const shards = 64

// Lines are the lines of all keys. L is what a leader shows, T what is handed on, W what a waiter
// shows.
type Lines[L, T, W any] struct {
	seed   maphash.Seed
	shards [shards]shard[L, T, W]
}

type shard[L, T, W any] struct {
	mu    sync.Mutex
	lines map[string]*Line[L, T, W]
}

// Line is the line of one key. It exists from the first Enter until somebody leads no more and
// nobody stands behind.
type Line[L, T, W any] struct {
	shard *shard[L, T, W]
	key   string
	lead  L                  // guarded by shard.mu
	queue []*Waiter[L, T, W] // guarded by shard.mu
}

// Waiter is a place in a line.
type Waiter[L, T, W any] struct {
	line  *Line[L, T, W]
	shows W
	turn  chan T // buffered: to hand on never blocks
}

// New returns lines without anybody in them.
func New[L, T, W any]() *Lines[L, T, W] {
	l := &Lines[L, T, W]{seed: maphash.MakeSeed()}
	for i := range l.shards {
		l.shards[i].lines = map[string]*Line[L, T, W]{}
	}
	return l
}

// Enter joins the key's line. The Waiter is nil if nobody is there: then the caller leads, until
// HandOn says that it does not, or Leave.
func (l *Lines[L, T, W]) Enter(key string, shows W) (*Line[L, T, W], *Waiter[L, T, W]) {
	s := &l.shards[maphash.String(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[key]
	if line == nil {
		return s.lead(key), nil
	}
	w := &Waiter[L, T, W]{line: line, shows: shows, turn: make(chan T, 1)}
	line.queue = append(line.queue, w)
	return line, w
}

// Lead is Enter for who does not stand in line: the caller leads, or if somebody is there, Lead
// returns nil.
func (l *Lines[L, T, W]) Lead(key string) *Line[L, T, W] {
	s := &l.shards[maphash.String(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines[key] != nil {
		return nil
	}
	return s.lead(key)
}

// lead makes the line of a key that has none. s.mu is held.
func (s *shard[L, T, W]) lead(key string) *Line[L, T, W] {
	line := &Line[L, T, W]{shard: s, key: key}
	s.lines[key] = line
	return line
}

// Find returns what the leader of the key's line shows, and how many stand behind; ok is false if
// nobody leads.
func (l *Lines[L, T, W]) Find(key string) (lead L, waiting int, ok bool) {
	s := &l.shards[maphash.String(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[key]
	if line == nil {
		return lead, 0, false
	}
	return line.lead, len(line.queue), true
}

// Show is called by the leader: Find returns lead, until Leave.
func (l *Line[L, T, W]) Show(lead L) {
	l.shard.mu.Lock()
	l.lead = lead
	l.shard.mu.Unlock()
}

// Waiting is how many stand behind the leader.
func (l *Line[L, T, W]) Waiting() int {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	return len(l.queue)
}

// HandOn is called by the leader. offer is asked for each waiter in turn, until it returns true:
// that waiter leads, and gets the value. It returns false if offer took none, and the caller still
// leads.
func (l *Line[L, T, W]) HandOn(offer func(shows W) (value T, take, next bool)) bool {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	for i, w := range l.queue {
		value, take, next := offer(w.shows)
		if take {
			l.remove(i)
			w.turn <- value
			return true
		}
		if !next {
			break
		}
	}
	return false
}

// Leave is called by the leader, who leads no more: the head of the line does, and gets the value
// that first returns. If nobody stands in line it is gone, and Leave returns false.
func (l *Line[L, T, W]) Leave(first func(shows W) T) bool {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	var nothing L
	l.lead = nothing
	if len(l.queue) == 0 {
		delete(l.shard.lines, l.key)
		return false
	}
	w := l.queue[0]
	l.remove(0)
	w.turn <- first(w.shows)
	return true
}

// Dismiss is called by the leader, who leads no more: all that stand in line get the value, and the
// line is gone.
func (l *Line[L, T, W]) Dismiss(value T) {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	for _, w := range l.queue {
		w.turn <- value
	}
	l.queue = nil
	delete(l.shard.lines, l.key)
}

func (l *Line[L, T, W]) remove(i int) {
	if i == 0 {
		l.queue[0] = nil
		l.queue = l.queue[1:]
		return
	}
	l.queue = slices.Delete(l.queue, i, i+1)
}

// Turn is where the value arrives, once. After that the waiter leads, or was dismissed.
func (w *Waiter[L, T, W]) Turn() <-chan T { return w.turn }

// GiveUp takes the waiter out of its line. It returns false if its turn has come: the value is in
// Turn.
func (w *Waiter[L, T, W]) GiveUp() bool {
	l := w.line
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	i := slices.Index(l.queue, w)
	if i >= 0 {
		l.remove(i)
	}
	return i >= 0
}
