// SPDX-License-Identifier: Apache-2.0

package holdfastotel_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/client"
	holdfastotel "github.com/holdfast-go/holdfast/client/adapter/otel"
	"github.com/holdfast-go/holdfast/integration/server"
)

// nowhere exports nothing.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }

// way is one way to observe a lock.
type way struct {
	name     string
	observer *client.Observer
	client   *client.Client
	took     []time.Duration
}

func noop() *client.Observer {
	return &client.Observer{
		Asked:      func(context.Context, client.Ask) {},
		Acquired:   func(_, lock context.Context, _ client.Acquisition) context.Context { return lock },
		Refused:    func(context.Context, client.Refusal) {},
		Renewed:    func(client.Renewal) {},
		Released:   func(client.Tenure) {},
		Lost:       func(client.Tenure) {},
		Connection: func(client.Connection) {},
	}
}

func observed(tb testing.TB, sampler sdktrace.Sampler) *client.Observer {
	spans := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(nowhere{}))
	tb.Cleanup(func() { _ = spans.Shutdown(context.Background()) })
	o, err := holdfastotel.New(holdfastotel.Options{
		MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())), TracerProvider: spans,
	})
	require.NoError(tb, err)
	return o
}

// BenchmarkObserved takes and releases a lock that nobody else wants, on a real server, in each way by
// turns. ns/op is all of them; the metrics are the median of each way, its ratio to that without an
// Observer, and the memory that it allocates.
func BenchmarkObserved(b *testing.B) {
	d := server.Single(b)
	ways := []*way{
		{name: "unset"},
		{name: "no-op", observer: noop()},
		{name: "otel-never", observer: observed(b, sdktrace.NeverSample())},
		{name: "otel-always", observer: observed(b, sdktrace.AlwaysSample())},
	}
	lock := func(w *way) time.Duration {
		began := time.Now()
		l, err := w.client.Acquire(ctx, "observed:"+w.name)
		if err == nil {
			err = l.Release(ctx)
		}
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	for _, w := range ways {
		c, err := client.Open(d.ClientOption(), client.Config{Observer: w.observer, AutoLoad: true})
		require.NoError(b, err)
		b.Cleanup(c.Close)
		w.client = c
		for range 100 {
			lock(w)
		}
	}
	for i := 0; b.Loop(); i++ {
		for j := range ways {
			w := ways[(i+j)%len(ways)]
			w.took = append(w.took, lock(w))
		}
	}
	unset := median(ways[0].took)
	for _, w := range ways {
		b.ReportMetric(float64(median(w.took).Nanoseconds()), w.name+"-ns")
		b.ReportMetric(float64(median(w.took))/float64(unset), w.name+"-ratio")
		b.ReportMetric(testing.AllocsPerRun(100, func() { lock(w) }), w.name+"-allocs")
	}
}

// BenchmarkObserver is what the Observer itself costs for one lock, without a client and a server.
func BenchmarkObserver(b *testing.B) {
	for _, w := range []way{
		{name: "no-op", observer: noop()},
		{name: "otel-never", observer: observed(b, sdktrace.NeverSample())},
		{name: "otel-always", observer: observed(b, sdktrace.AlwaysSample())},
	} {
		b.Run(w.name, func(b *testing.B) {
			b.ReportAllocs()
			o := w.observer
			for i := int64(1); b.Loop(); i++ {
				o.Asked(ctx, client.Ask{Name: "x", Wait: true})
				within := o.Acquired(ctx, ctx, client.Acquisition{Name: "x", Owner: "a", Fence: i, Hold: i, Asked: time.Now(), Wait: true})
				if w.name == "otel-always" && !trace.SpanContextFromContext(within).IsSampled() {
					b.Fatal("no span")
				}
				o.Released(client.Tenure{Name: "x", Owner: "a", Fence: i, Hold: i, Held: time.Millisecond})
			}
		})
	}
}

func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2]
}
