package quorum

import (
	"sync"
	"time"
)

// doubts are about the servers that have the lines. Such a server can have a lock as one's who has it
// nowhere else: a vote that could not be given back, or a clock that was set back. That one is in
// nobody's way for longer than a moment; else one server could keep a lock from all.
type doubts struct {
	mu    sync.Mutex
	about map[string]doubt // by key
}

type doubt struct {
	holder string
	since  time.Time
	last   time.Time
}

const (
	doubted    = 100 * time.Millisecond // who has its turn has collected the votes by then
	doubtsMost = 1024
)

// of notes that a majority would give away a lock that the line's server has as the holder's. It
// reports whether that was so before, some time ago.
func (d *doubts) of(key, holder string) bool {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.about[key]
	if known.holder != holder || now.Sub(known.last) > time.Minute {
		known = doubt{holder: holder, since: now}
	}
	known.last = now
	if len(d.about) >= doubtsMost {
		clear(d.about)
	}
	d.about[key] = known
	return now.Sub(known.since) >= doubted
}
