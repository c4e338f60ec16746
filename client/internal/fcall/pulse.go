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
}

// NewPulse returns one that has heard nothing.
func NewPulse() *Pulse { return &Pulse{born: time.Now()} }

func (p *Pulse) asked() {
	if p.calls.Add(1) == 1 {
		p.since.Store(int64(time.Since(p.born)))
	}
}

func (p *Pulse) done(answered bool) {
	p.calls.Add(-1)
	if answered {
		p.answers.Store(int64(time.Since(p.born)))
	}
}

// Silent is for how long calls have been under way and none was answered; 0 if none is.
func (p *Pulse) Silent() time.Duration {
	if p.calls.Load() <= 0 {
		return 0
	}
	return time.Since(p.born) - time.Duration(max(p.since.Load(), p.answers.Load()))
}
