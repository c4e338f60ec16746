// SPDX-License-Identifier: Apache-2.0

package holdfastotel_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/client"
	holdfastotel "github.com/holdfast-go/holdfast/client/adapter/otel"
	"github.com/holdfast-go/holdfast/client/locktest"
)

var ctx = context.Background()

// process is what a process has of OpenTelemetry: an Observer, and what it makes.
type process struct {
	*client.Observer
	t      *testing.T
	tracer trace.Tracer
	ended  *tracetest.SpanRecorder
	reader *metric.ManualReader
}

func newProcess(t *testing.T, group func(string) string) *process {
	t.Helper()
	p := &process{t: t, ended: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	spans := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p.ended))
	p.tracer = spans.Tracer("test")
	var err error
	p.Observer, err = holdfastotel.New(holdfastotel.Options{
		MeterProvider: metric.NewMeterProvider(metric.WithReader(p.reader)), TracerProvider: spans, Group: group,
	})
	require.NoError(t, err)
	return p
}

// spans are those of a name that have ended, in that order.
func (p *process) spans(name string) (found []sdktrace.ReadOnlySpan) {
	synctest.Wait() // a lock's context ends before the Observer is told why
	for _, s := range p.ended.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

// only is the only span of a name.
func (p *process) only(name string) sdktrace.ReadOnlySpan {
	p.t.Helper()
	found := p.spans(name)
	require.Len(p.t, found, 1, name)
	return found[0]
}

// within is a context with a span, and that span, which is ended with the test.
func (p *process) within(name string) (context.Context, trace.Span) {
	ctx, span := p.tracer.Start(ctx, name)
	p.t.Cleanup(func() { span.End() })
	return ctx, span
}

// value is that of a metric with these attributes, as key and value by turns: of a histogram its count,
// and its sum as a time. -1: there is none.
func (p *process) value(name string, attributes ...string) (n int64, sum time.Duration) {
	p.t.Helper()
	synctest.Wait()
	var all metricdata.ResourceMetrics
	require.NoError(p.t, p.reader.Collect(ctx, &all))
	n = -1
	note := func(set attribute.Set, more int64, took float64) {
		for i := 0; i < len(attributes); i += 2 {
			if v, ok := set.Value(attribute.Key(attributes[i])); !ok || v.AsString() != attributes[i+1] {
				return
			}
		}
		n, sum = max(n, 0)+more, sum+time.Duration(took*float64(time.Second))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					note(point.Attributes, point.Value, 0)
				}
			case metricdata.Histogram[float64]:
				require.Equal(p.t, "s", m.Unit)
				for _, point := range data.DataPoints {
					note(point.Attributes, int64(point.Count), point.Sum)
				}
			}
		}
	}
	return n, sum
}

// names are those of all metrics that have a value.
func (p *process) names() (names []string) {
	p.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(p.t, p.reader.Collect(ctx, &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			names = append(names, m.Name)
		}
	}
	return names
}

func (p *process) counts(want int64, name string, attributes ...string) {
	p.t.Helper()
	n, _ := p.value(name, attributes...)
	require.Equal(p.t, want, n, "%s %v", name, attributes)
}

// is requires that a span has an attribute.
func is(t *testing.T, span sdktrace.ReadOnlySpan, key, want string) {
	t.Helper()
	for _, a := range span.Attributes() {
		if string(a.Key) == key {
			require.Equal(t, want, a.Value.String(), key)
			return
		}
	}
	t.Fatalf("%s has no %s: %v", span.Name(), key, span.Attributes())
}

// linked are the spans that a span is linked to.
func linked(s sdktrace.ReadOnlySpan) (ids []trace.SpanID) {
	for _, l := range s.Links() {
		ids = append(ids, l.SpanContext.SpanID())
	}
	return ids
}

// bubble runs a test in virtual time. One whose time stands still hangs without a message: a watchdog
// ends it.
func bubble(t *testing.T, test func(t *testing.T, s *locktest.Server)) {
	t.Helper()
	dog := time.AfterFunc(2*time.Minute, func() {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "%s hangs\n%s\n", t.Name(), stacks[:runtime.Stack(stacks, true)])
		os.Exit(2)
	})
	defer dog.Stop()
	synctest.Test(t, func(t *testing.T) { test(t, locktest.New(t)) })
}
