package fcall

import (
	"sync/atomic"
	"time"
)

// Pulse reports whether the server answers.
type Pulse struct {
	born time.Time
	// when the first call began that has had no answer, and nor has any later one, in nanoseconds
	// since born; 0: there is none
	since atomic.Int64
	calls atomic.Int64 // under way
}

// NewPulse returns one that has heard nothing.
func NewPulse() *Pulse { return &Pulse{born: time.Now()} }

func (p *Pulse) now() int64 { return max(1, int64(time.Since(p.born))) }

func (p *Pulse) asked() {
	p.calls.Add(1)
	if p.since.Load() == 0 {
		p.since.CompareAndSwap(0, p.now())
	}
}

// done notes that a call is over. One that was given up leaves the silence as it was.
func (p *Pulse) done(answered bool) {
	left := p.calls.Add(-1)
	switch {
	case !answered:
	case left > 0:
		p.since.Store(p.now())
	default:
		p.since.Store(0)
	}
}

// Silent is for how long the server has been asked and has not answered; 0 if it owes no answer.
func (p *Pulse) Silent() time.Duration {
	since := p.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(p.born) - time.Duration(since)
}
