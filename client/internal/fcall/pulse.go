package fcall

import (
	"sync/atomic"
	"time"
)

// Pulse reports whether the server answers.
type Pulse struct {
	born    time.Time
	calls   atomic.Int64 // under way
	since   atomic.Int64 // the first of them began, in nanoseconds since born
	answers atomic.Int64 // the last one came
	givenUp atomic.Int64 // the last call ended without one
}

// together is how far apart contexts end that one deadline ends: the caller of a call, and those who
// wait behind it.
const together = 10 * time.Millisecond

// NewPulse returns one that has heard nothing.
func NewPulse() *Pulse { return &Pulse{born: time.Now()} }

func (p *Pulse) asked() {
	if p.calls.Add(1) == 1 {
		p.since.Store(int64(time.Since(p.born)))
	}
}

func (p *Pulse) done(answered bool) {
	at := &p.givenUp
	if answered {
		at = &p.answers
	}
	at.Store(int64(time.Since(p.born)))
	p.calls.Add(-1)
}

// Silent is for how long calls have been under way and none was answered; 0 if none is. A call that
// was given up this moment counts too.
func (p *Pulse) Silent() time.Duration {
	now := time.Since(p.born)
	if p.calls.Load() <= 0 && (p.givenUp.Load() == 0 || now-time.Duration(p.givenUp.Load()) > together) {
		return 0
	}
	return now - time.Duration(max(p.since.Load(), p.answers.Load()))
}
