// SPDX-License-Identifier: Apache-2.0

package holdfastotel

import (
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/client"
)

// present knows the holds and the waiters of this process. A lock is in it for as long as it has one
// of them.
type present struct {
	mu    sync.Mutex // a leaf
	locks map[string]*lock
	holds map[any]trace.Span // by Acquisition.Hold
}

// lock is what is known of one name.
type lock struct {
	asking int // calls without an answer
	holds  int // that have not ended
	// of the last hold to begin, and when that is over of the last one to end: a limited or shared lock
	// has several. It outlives that hold for those who ask already: to hear of its end and to be given
	// the lock happens at once, in any order
	span  trace.SpanContext
	owner string
	over  time.Time // zero: it is held
}

// asks notes a call.
func (p *present) asks(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at(name).asking++
}

// answered notes the end of a call, and returns the last hold that was there while it lasted, and
// whether that ended meanwhile.
func (p *present) answered(name string, asked time.Time) (span trace.SpanContext, owner string, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.at(name)
	if l.over.IsZero() || !l.over.Before(asked) {
		span, owner, ended = l.span, l.owner, !l.over.IsZero()
	}
	l.asking--
	p.tidy(name, l)
	return span, owner, ended
}

// begins notes a hold.
func (p *present) begins(a client.Acquisition, span trace.Span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.at(a.Name)
	l.holds++
	l.span, l.owner, l.over = span.SpanContext(), a.Owner, time.Time{}
	p.holds[a.Hold] = span
}

// ends returns the span of a hold that is over.
func (p *present) ends(t client.Tenure) trace.Span {
	p.mu.Lock()
	defer p.mu.Unlock()
	span := p.holds[t.Hold]
	if span == nil {
		return nil
	}
	delete(p.holds, t.Hold)
	l := p.at(t.Name)
	l.holds--
	if ended := span.SpanContext(); !l.over.IsZero() || l.span.Equal(ended) {
		l.span, l.owner, l.over = ended, t.Owner, time.Now()
	}
	p.tidy(t.Name, l)
	return span
}

func (p *present) at(name string) *lock {
	l := p.locks[name]
	if l == nil {
		l = &lock{}
		p.locks[name] = l
	}
	return l
}

func (p *present) tidy(name string, l *lock) {
	if l.asking == 0 && l.holds == 0 {
		delete(p.locks, name)
	}
}
