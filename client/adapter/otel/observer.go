// SPDX-License-Identifier: Apache-2.0

// Package holdfastotel shows what locks do as metrics and traces of OpenTelemetry:
//
//	import holdfastotel "github.com/holdfast-go/holdfast/client/adapter/otel"
//
//	observer, err := holdfastotel.New(holdfastotel.Options{})
//	...
//	c, err := client.Open(option, client.Config{Observer: observer})
//
// The metrics:
//
//	holdfast.lock.wait.duration     s, histogram   from a call of TryAcquire or Acquire to its return
//	holdfast.lock.waiting           {call}         calls of Acquire that have not returned
//	holdfast.lock.hold.duration     s, histogram   how long locks were held
//	holdfast.lock.held              {lock}         locks that are held
//	holdfast.lock.lost              {lock}         locks that ended before their release, counted
//	holdfast.lock.renewal.duration  s, histogram   how long renewals took
//	holdfast.connection.outages     {outage}       renewals began to fail, counted
//	holdfast.connection.recoveries  {outage}       and the server answered again
//
// Their attributes have few values: holdfast.call (try or acquire), holdfast.outcome of waits
// (acquired, passed, reentered, or the kind of the error) and of renewals (renewed, or that kind),
// holdfast.end of holds (released, passed, or why the lock ended), holdfast.cause of losses, and
// holdfast.lock.group if Options.Group is set. docs/observing.md of the repository has all values, and
// what to do when the metrics change.
//
// The spans:
//
//   - 'holdfast wait' is one call of Acquire that had to wait or failed, from its beginning to its end,
//     a child of the caller's span. One that finds the lock free, and has it within 10 ms, has none:
//     the metrics count it. A wait is linked to the hold that it waited for, if that was in this
//     process and of the same Observer; and to the span in the label of the last holder that the
//     server told of, see Label.
//   - 'holdfast hold' is the time with the lock. It is in the lock's context, so the spans of the work
//     are its children. It ends with the lock, and its status says so if that was early.
//
// A refused TryAcquire is an event of the caller's span. Re-entry is seen in the metrics only. Spans
// have the lock's name, its owner and its token, and the labels of others, which is text that they chose.
package holdfastotel

import (
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/adapter/internal/measure"
)

// scope is the name of what measures.
const scope = "github.com/holdfast-go/holdfast/client/adapter/otel"

// Options are the settings of New. The zero value is a good one.
type Options struct {
	// MeterProvider gets the metrics; one of its noop package switches them off. Default the global one.
	MeterProvider metric.MeterProvider
	// TracerProvider gets the spans; one of its noop package switches them off. Default the global one.
	TracerProvider trace.TracerProvider
	// Group, if not nil, adds an attribute holdfast.lock.group to the metrics of locks: what it makes of
	// a lock's name. It is called for each event and returns at once, the same for the same name. Each
	// value costs metrics of its own, so it returns few: "order" for "order:42". Default nil: none.
	Group func(name string) string
}

// New makes an Observer for client.Config.Observer, of one Client or several of one Prefix: it knows locks
// by their names, which are without it. It does not block, and fails if the MeterProvider does.
// client.JoinObservers joins it with others.
func New(o Options) (*client.Observer, error) {
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	m, err := newMeter(o.MeterProvider.Meter(scope), o.Group != nil)
	if err != nil {
		return nil, fmt.Errorf("holdfast: metrics: %w", err)
	}
	return client.JoinObservers(measure.Observe(m, o.Group), newSpans(o.TracerProvider.Tracer(scope)).observer()), nil
}
