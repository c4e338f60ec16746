// SPDX-License-Identifier: Apache-2.0

package holdfastotel

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/client"
)

// traceparent is the W3C's header of that name.
const traceparent = "traceparent"

// room is what a label of 128 bytes has beside a traceparent and a space.
const room = 128 - 55 - 1

// Label shows text to losers and operators, as client.WithLabel does, and after it the span of ctx: those
// who wait for this lock in other processes link their wait to it. It is for one call, that of ctx:
//
//	lock, err := c.Acquire(ctx, "report", holdfastotel.Label(ctx, "nightly"))
//
// The span is shown as its traceparent of 55 bytes and a space, behind a text of at most 72 bytes: it is
// left out behind a longer one, and if it is not sampled.
//
// It has a price: goroutines of one process pass a lock on in memory only if their labels are equal.
// Those of different spans hand it over by the server, a round trip each time.
func Label(ctx context.Context, text string) client.Option {
	if !trace.SpanContextFromContext(ctx).IsSampled() || len(text) > room {
		return client.WithLabel(text) // a long text must not fail where a span happens to be sampled
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return client.WithLabel(strings.TrimSpace(text + " " + carrier[traceparent]))
}

// labelled is the span that a label shows. It is invalid if there is none.
func labelled(label string) trace.SpanContext {
	carrier := propagation.MapCarrier{traceparent: label[strings.LastIndexByte(label, ' ')+1:]}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
