// SPDX-License-Identifier: Apache-2.0

// Package tracking keeps what the server promised to tell of: answers that hold until their key
// changes, and keys whose changes concern somebody. It is client-side caching
// (https://redis.io/docs/latest/develop/reference/client-side-caching/) without its transport: the
// caller sends the tracked commands, and calls Invalidated.
//
// A kept answer is a hint, never the proof. It is believed until its key changes or its time is
// over, and for no longer than maxSilence after the server was last heard: in an outage, no news is
// no good news.
package tracking

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	maxEntries = 10_000 // keys remembered; then a tenth is forgotten
	maxSilence = time.Second
)

// Cache is safe for concurrent use.
type Cache struct {
	// Set before Switch: in Cluster a call that is redirected loses its tracking unnoticed, and one node says
	// nothing of the others, so nothing is believed for longer than maxSilence.
	Slotted bool

	on      atomic.Bool
	heard   atomic.Int64 // when the server last answered, in nanoseconds since born
	born    time.Time
	size    atomic.Int64 // of entries: an empty cache costs the other calls no mutex
	watches atomic.Int64 // keys that are watched: likewise

	mu      sync.Mutex
	entries map[string]*Question
	watched map[string][]*func() // by key: whom a change concerns
}

// Question is what is known of one key, as it was when the server was asked; nil keeps nothing. An answer is nil
// until a tracked call filled it. A key that changed gets a new one: what was asked before it is kept in the old
// one, where nobody looks.
type Question struct{ answers [kinds]answer }

type answer struct {
	value    any
	at, ends time.Time
}

// Kind is what an answer answers.
type Kind uint8

// The kinds of answers.
const (
	Refusal Kind = iota
	State
	kinds
)

// New returns a cache that is off.
func New() *Cache {
	return &Cache{born: time.Now(), entries: map[string]*Question{}, watched: map[string][]*func(){}}
}

// Switch turns the use of tracking on or off.
func (c *Cache) Switch(on bool) { c.on.Store(on) }

// On reports whether tracking is in use.
func (c *Cache) On() bool { return c.on.Load() }

// Heard notes that the server has answered just now.
func (c *Cache) Heard() {
	if c.size.Load() > 0 {
		c.heard.Store(int64(time.Since(c.born)))
	}
}

// Answer returns the answer that is kept for the key and its age, or else a Question: nil if
// the key was not Noticed.
func (c *Cache) Answer(key string, kind Kind) (value any, age time.Duration, q *Question) {
	if c.size.Load() == 0 {
		return nil, 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		return nil, 0, nil
	}
	now := time.Now()
	a := e.answers[kind]
	if a.value == nil || !now.Before(a.ends) || now.Sub(c.born)-time.Duration(c.heard.Load()) > maxSilence {
		return nil, 0, e
	}
	return a.value, now.Sub(a.at), nil
}

// Notice makes the key one whose answers are kept from the next question on.
func (c *Cache) Notice(key string) *Question {
	if !c.on.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[key]
	if e == nil {
		if len(c.entries) >= maxEntries {
			maps.DeleteFunc(c.entries, func(string, *Question) bool { return len(c.entries) > maxEntries*9/10 })
		}
		e = &Question{}
		c.entries[key] = e
		c.size.Store(int64(len(c.entries)))
	}
	return e
}

// Keep keeps the answer to a question that was sent at sent, for at most lifetime, unless the key
// has changed meanwhile.
func (c *Cache) Keep(q *Question, kind Kind, value any, sent time.Time, lifetime time.Duration) {
	if q == nil || !c.on.Load() || lifetime <= 0 {
		return
	}
	if c.Slotted {
		lifetime = min(lifetime, maxSilence)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	q.answers[kind] = answer{value, sent, sent.Add(lifetime)}
}

// Changed forgets what is kept of a key that a call of this client has changed, or may have: the server does not
// tell of that. It tells of no further change then, unless the call was tracked: whom it concerns looks.
func (c *Cache) Changed(key string, tracked bool) {
	if c.size.Load() == 0 && c.watches.Load() == 0 {
		return
	}
	c.mu.Lock()
	if c.entries[key] != nil {
		c.entries[key] = &Question{}
	}
	var concerned []*func()
	if !tracked {
		concerned = slices.Clone(c.watched[key])
	}
	c.mu.Unlock()
	for _, w := range concerned {
		(*w)()
	}
}

// Watch has changed called when others changed the key, or may have, until stop is called. It is
// called without the cache's mutex, and must not block. The caller sends a tracked call.
func (c *Cache) Watch(key string, changed func()) (stop func()) {
	w := &changed
	c.mu.Lock()
	c.watched[key] = append(c.watched[key], w)
	c.watches.Store(int64(len(c.watched)))
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		left := slices.DeleteFunc(c.watched[key], func(other *func()) bool { return other == w })
		if c.watched[key] = left; len(left) == 0 {
			delete(c.watched, key)
			c.watches.Store(int64(len(c.watched)))
		}
	}
}

// Invalidated is what rueidis calls when others changed keys: with nil when all may have changed,
// after a lost connection or a FLUSHALL.
func (c *Cache) Invalidated(messages []rueidis.RedisMessage) {
	if messages == nil {
		c.mu.Lock()
		changed := slices.AppendSeq(slices.Collect(maps.Keys(c.entries)), maps.Keys(c.watched))
		c.mu.Unlock()
		for _, key := range changed {
			c.Changed(key, false)
		}
	}
	for _, m := range messages {
		key, _ := m.ToString() // "" is no key of ours
		c.Changed(key, false)
	}
}
