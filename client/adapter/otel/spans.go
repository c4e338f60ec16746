package otel

import (
	"context"
	"errors"
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
	before, owner := s.present.answered(a.Name, a.Asked)
	if a.Reentered {
		return lock
	}
	if a.Wait {
		span := s.wait(call, a.Name, a.Asked, links(before, owner, a.Behind))
		span.SetAttributes(outcomeKey.String(measure.Granted(a)))
		span.End()
	}
	options := []trace.SpanStartOption{trace.WithAttributes(nameKey.String(a.Name), ownerKey.String(a.Owner), fenceKey.Int64(a.Fence))}
	if caller := trace.SpanContextFromContext(call); caller.IsValid() && !caller.Equal(trace.SpanContextFromContext(lock)) {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: caller})) // client.WithLockContext
	}
	lock, span := s.tracer.Start(lock, "holdfast hold", options...)
	s.present.begins(a, span)
	return lock
}

func (s *spans) refused(ctx context.Context, r client.Refusal) {
	before, owner := s.present.answered(r.Name, r.Asked)
	kind, behind := measure.Kind(r.Err), last(r.Err)
	attributes := []attribute.KeyValue{outcomeKey.String(kind)}
	if behind != nil && behind.Holder.Owner != "" {
		attributes = append(attributes, holderKey.String(behind.Holder.String()))
	}
	if !r.Wait {
		if span := trace.SpanFromContext(ctx); span.IsRecording() {
			span.AddEvent("holdfast refused", trace.WithAttributes(append(attributes, nameKey.String(r.Name))...))
		}
		return
	}
	span := s.wait(ctx, r.Name, r.Asked, links(before, owner, behind))
	defer span.End()
	span.SetAttributes(attributes...)
	fail(span, kind, r.Err)
}

// wait begins the span of a wait that is over now.
func (s *spans) wait(ctx context.Context, name string, asked time.Time, links []trace.Link) trace.Span {
	_, span := s.tracer.Start(ctx, "holdfast wait", trace.WithTimestamp(asked), trace.WithLinks(links...),
		trace.WithAttributes(nameKey.String(name)))
	return span
}

func (s *spans) ended(t client.Tenure) {
	span := s.present.ends(t)
	if span == nil {
		return
	}
	end := measure.End(t)
	span.SetAttributes(endKey.String(end))
	if t.Err != nil {
		fail(span, end, t.Err)
	}
	span.End()
}

func fail(span trace.Span, kind string, err error) {
	span.SetAttributes(errorKey.String(kind))
	span.SetStatus(codes.Error, err.Error())
}

// links are to those whom a call waited for: the last holder in this process, and behind, the one that
// the server told of, if that is another and shows its span.
func links(before trace.SpanContext, owner string, behind *client.BusyError) (found []trace.Link) {
	if before.IsValid() {
		found = append(found, trace.Link{SpanContext: before})
	}
	if behind == nil || behind.Holder.Owner == owner {
		return found
	}
	if span := labelled(behind.Holder.Label); span.IsValid() {
		found = append(found, trace.Link{SpanContext: span, Attributes: []attribute.KeyValue{holderKey.String(behind.Holder.String())}})
	}
	return found
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
