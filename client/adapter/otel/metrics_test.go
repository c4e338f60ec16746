// SPDX-License-Identifier: Apache-2.0

package holdfastotel_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast/client"
	holdfastotel "github.com/holdfast-go/holdfast/client/adapter/otel"
	"github.com/holdfast-go/holdfast/client/locktest"
)

func TestMetricsOfWaitsAndHolds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, nil)
		a, b := s.Client(client.Config{Observer: p.Observer}), s.Client(client.Config{Observer: p.Observer})
		l, err := a.TryAcquire(ctx, "x")
		require.NoError(t, err)
		waited := make(chan error)
		go func() {
			_, err := b.Acquire(ctx, "x", client.WithMaxWait(15*time.Second))
			waited <- err
		}()
		time.Sleep(11 * time.Second)
		p.counts(1, "holdfast.lock.held")
		p.counts(1, "holdfast.lock.waiting")
		require.ErrorIs(t, <-waited, client.ErrTimeout)
		require.NoError(t, l.Release(ctx))
		p.counts(0, "holdfast.lock.held")
		p.counts(0, "holdfast.lock.waiting")
		p.counts(1, "holdfast.lock.wait.duration", "holdfast.call", "try", "holdfast.outcome", "acquired")
		n, took := p.value("holdfast.lock.wait.duration", "holdfast.call", "acquire", "holdfast.outcome", "timeout")
		require.Equal(t, int64(1), n)
		require.InDelta(t, 15*time.Second, took, float64(10*time.Millisecond))
		n, took = p.value("holdfast.lock.hold.duration", "holdfast.end", "released")
		require.Equal(t, int64(1), n)
		require.InDelta(t, 15*time.Second, took, float64(10*time.Millisecond))
		n, _ = p.value("holdfast.lock.renewal.duration", "holdfast.outcome", "renewed")
		require.Positive(t, n)
	})
}

func TestMetricsOfAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, strings.ToUpper)
		c := s.Client(client.Config{Lease: 3 * time.Second, Observer: p.Observer})
		l, err := c.Acquire(ctx, "x")
		require.NoError(t, err)
		p.counts(0, "holdfast.lock.lost", "holdfast.cause", "expired", "holdfast.lock.group", "X")
		p.counts(0, "holdfast.connection.outages")
		s.Cut()
		<-l.Context().Done()
		p.counts(1, "holdfast.connection.outages")
		p.counts(0, "holdfast.connection.recoveries")
		s.Restore()
		require.ErrorIs(t, l.Release(ctx), client.ErrExpired)
		_, err = c.Inspect(ctx, "x")
		require.NoError(t, err)
		p.counts(1, "holdfast.connection.recoveries")
		p.counts(1, "holdfast.lock.lost", "holdfast.cause", "expired", "holdfast.lock.group", "X")
		p.counts(1, "holdfast.lock.hold.duration", "holdfast.end", "expired", "holdfast.lock.group", "X")
		n, _ := p.value("holdfast.lock.renewal.duration", "holdfast.outcome", "unreachable", "holdfast.lock.group", "X")
		require.Positive(t, n)

		page, err := os.ReadFile("../../../docs/observing.md")
		require.NoError(t, err)
		require.Len(t, p.names(), 8)
		for _, name := range p.names() {
			require.Contains(t, string(page), "`"+name+"`")
		}
	})
}

// A lock is passed on in memory, and re-entered: both are told apart from what the server gave.
func TestMetricsOfAPassAndOfReentry(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, nil)
		c := s.Client(client.Config{Observer: p.Observer})
		l, err := c.Acquire(ctx, "x")
		require.NoError(t, err)
		done := make(chan error)
		for range 2 { // the first of them asks the server for what it passes on
			go func() {
				done <- c.Do(ctx, "x", func(ctx context.Context) error {
					time.Sleep(100 * time.Microsecond) // a token is a time in microseconds
					return c.Do(ctx, "x", func(context.Context) error { return nil })
				})
			}()
		}
		time.Sleep(time.Second)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, <-done)
		require.NoError(t, <-done)
		for outcome, n := range map[string]int64{"acquired": 2, "passed": 1, "reentered": 2} {
			p.counts(n, "holdfast.lock.wait.duration", "holdfast.outcome", outcome)
		}
		p.counts(3, "holdfast.lock.hold.duration")
		p.counts(1, "holdfast.lock.hold.duration", "holdfast.end", "passed")
		p.counts(0, "holdfast.lock.held")
		require.Len(t, p.spans("holdfast wait"), 2, "re-entry makes no span, nor a lock that is free")
		require.Len(t, p.spans("holdfast hold"), 3)
	})
}

// OpenTelemetry lets a program set its global provider after its instruments are made.
func TestAGlobalProviderThatIsSetLater(t *testing.T) {
	observer, err := holdfastotel.New(holdfastotel.Options{})
	require.NoError(t, err)
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	synctest.Test(t, func(t *testing.T) {
		c := locktest.New(t).Client(client.Config{Observer: observer})
		require.NoError(t, c.Do(t.Context(), "order:42", func(context.Context) error { return nil }))
	})
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	points := map[string]int{}
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok {
				points[m.Name] = len(sum.DataPoints)
			}
		}
	}
	if points["holdfast.lock.lost"] != 6 ||
		points["holdfast.connection.outages"] != 1 || points["holdfast.connection.recoveries"] != 1 {
		t.Errorf("the first loss and the first outage are no increase: %v", points)
	}
}
