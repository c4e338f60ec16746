// SPDX-License-Identifier: Apache-2.0

package holdfastotel

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/adapter/internal/measure"
)

// The attributes that only spans have.
const (
	nameKey   = attribute.Key("holdfast.lock.name")
	ownerKey  = attribute.Key("holdfast.lock.owner")
	fenceKey  = attribute.Key("holdfast.lock.fence")
	holderKey = attribute.Key("holdfast.lock.holder") // another one, in words
	errorKey  = attribute.Key("error.type")
)

// brief is how long a call may take that finds the lock free, and still is no wait. A span costs as much
// as a tenth of a round trip.
const brief = 10 * time.Millisecond

// spans makes the spans.
type spans struct {
	tracer  trace.Tracer
	present present
}

func newSpans(tracer trace.Tracer) *spans {
	return &spans{tracer: tracer, present: present{locks: map[string]*lock{}, holds: map[any]trace.Span{}}}
}

func (s *spans) observer() *client.Observer {
	return &client.Observer{
		Asked:    func(_ context.Context, a client.Ask) { s.present.asks(a.Name) },
		Acquired: s.acquired,
		Refused:  s.refused,
		Released: s.ended,
		Lost:     s.ended,
	}
}

func (s *spans) acquired(call, lock context.Context, a client.Acquisition) context.Context {
	before, owner, ended := s.present.answered(a.Name, a.Asked)
	if a.Reentered {
		return lock
	}
	// One that is brief was for nobody, if nothing else tells: a limited or shared lock has room beside a hold.
	if a.Wait && (ended || a.Passed || a.Behind != nil || time.Since(a.Asked) >= brief) {
		_, span := s.tracer.Start(call, "holdfast wait", trace.WithTimestamp(a.Asked),
			trace.WithAttributes(text(nameKey, a.Name), outcomeKey.String(measure.Granted(a))))
		if span.IsRecording() {
			link(span, before, owner, a.Behind)
		}
		span.End()
	}
	caller, above := trace.SpanContextFromContext(call), trace.SpanContextFromContext(lock)
	lock, span := s.tracer.Start(lock, "holdfast hold",
		trace.WithAttributes(text(nameKey, a.Name), text(ownerKey, a.Owner), fenceKey.Int64(a.Fence)))
	if span.IsRecording() {
		if caller.IsValid() && !caller.Equal(above) { // client.WithLockContext
			span.AddLink(trace.Link{SpanContext: caller})
		}
	}
	s.present.begins(a, span)
	return lock
}

func (s *spans) refused(ctx context.Context, r client.Refusal) {
	before, owner, _ := s.present.answered(r.Name, r.Asked)
	span := trace.SpanFromContext(ctx)
	if r.Wait {
		_, span = s.tracer.Start(ctx, "holdfast wait", trace.WithTimestamp(r.Asked), trace.WithAttributes(text(nameKey, r.Name)))
		defer span.End()
	}
	if !span.IsRecording() {
		return
	}
	kind, behind := measure.Kind(r.Err), last(r.Err)
	attributes := []attribute.KeyValue{outcomeKey.String(kind)}
	if behind != nil && behind.Holder.Owner != "" {
		attributes = append(attributes, holderKey.String(behind.Holder.String()))
	}
	if !r.Wait {
		span.AddEvent("holdfast refused", trace.WithAttributes(append(attributes, text(nameKey, r.Name))...))
		return
	}
	span.SetAttributes(attributes...)
	link(span, before, owner, behind)
	fail(span, kind, r.Err)
}

func (s *spans) ended(t client.Tenure) {
	span := s.present.ends(t)
	if span == nil {
		return
	}
	if span.IsRecording() {
		end := measure.End(t)
		span.SetAttributes(endKey.String(end))
		if t.Err != nil {
			fail(span, end, t.Err)
		}
	}
	span.End()
}

// text is an attribute of what others chose. OTLP refuses all spans that go with one that is not UTF-8.
func text(key attribute.Key, value string) attribute.KeyValue {
	return key.String(strings.ToValidUTF8(value, "?"))
}

func fail(span trace.Span, kind string, err error) {
	span.SetAttributes(errorKey.String(kind))
	span.SetStatus(codes.Error, strings.ToValidUTF8(err.Error(), "?"))
}

// link links a wait to those whom it was for: before, the last holder in this process, and behind, the
// one that the server told of, if that is another and shows its span.
func link(wait trace.Span, before trace.SpanContext, owner string, behind *client.BusyError) {
	if before.IsValid() {
		wait.AddLink(trace.Link{SpanContext: before})
	}
	if behind == nil || behind.Holder.Owner == owner {
		return
	}
	if span := labelled(behind.Holder.Label); span.IsValid() {
		wait.AddLink(trace.Link{SpanContext: span, Attributes: []attribute.KeyValue{holderKey.String(behind.Holder.String())}})
	}
}

// last is who had the lock, as far as an error tells.
func last(err error) *client.BusyError {
	var busy *client.BusyError
	var wait *client.WaitError
	switch {
	case errors.As(err, &busy):
		return busy
	case errors.As(err, &wait):
		return wait.Last
	}
	return nil
}
