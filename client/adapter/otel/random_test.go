// SPDX-License-Identifier: Apache-2.0

package holdfastotel_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast/client"
	holdfastotel "github.com/holdfast-go/holdfast/client/adapter/otel"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// Whatever happens, each span ends once, and what is known of holds and waiters ends with them.
func TestNothingIsLeftOfRandomWork(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			spans := tracetest.NewSpanRecorder()
			observer, known := holdfastotel.Spans(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
			var clients []*client.Client
			for range 2 {
				clients = append(clients, s.Client(client.Config{Lease: time.Second, Observer: observer}))
			}
			over, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			var work sync.WaitGroup
			for i := range 6 {
				work.Go(func() { workAtRandom(over, clients[i%2], rand.New(rand.NewPCG(seed, uint64(i)))) })
			}
			work.Go(func() {
				for r := rand.New(rand.NewPCG(seed, 99)); over.Err() == nil; time.Sleep(time.Duration(r.IntN(800)) * time.Millisecond) {
					strike(s, r)
				}
			})
			work.Wait()
			for clients[0].Do(ctx, "c", func(context.Context) error { return nil }) != nil { // nobody asks for it later
				time.Sleep(time.Second)
			}
			for _, c := range clients {
				c.Close()
			}
			locks, holds := known()
			require.Zero(t, locks)
			require.Zero(t, holds)
			require.Equal(t, len(spans.Started()), len(spans.Ended()))
			ended, links := map[any]bool{}, 0
			for _, span := range spans.Ended() {
				require.False(t, ended[span.SpanContext().SpanID()], "ended twice")
				ended[span.SpanContext().SpanID()] = true
				links += len(span.Links())
			}
			require.Greater(t, len(ended), 50)
			require.Greater(t, links, 10)
		})
	}
}

func workAtRandom(over context.Context, c *client.Client, r *rand.Rand) {
	for over.Err() == nil {
		within, cancel := context.WithTimeout(over, time.Duration(1+r.IntN(3000))*time.Millisecond)
		name := []string{"a", "b"}[r.IntN(2)]
		opts := [][]client.Option{nil, {client.WithMinHold(200 * time.Millisecond)}, {client.WithMaxHold(300*time.Millisecond, 0)},
			{client.WithoutRenewal()}}[r.IntN(4)]
		err := c.Do(within, name, func(ctx context.Context) error {
			time.Sleep(time.Duration(r.IntN(500*r.IntN(6)+1)) * time.Millisecond)
			return c.Do(ctx, name, func(context.Context) error { return nil })
		}, opts...)
		if l, err := c.TryAcquire(within, name); err == nil {
			_ = l.Release(ctx)
		}
		cancel()
		if err != nil {
			time.Sleep(time.Duration(1+r.IntN(20)) * time.Millisecond)
		}
	}
}

func strike(s *locktest.Server, r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		s.Break("a", "because")
	case 1:
		s.Delete("b")
	case 2:
		s.Cut()
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		s.Restore()
	case 3:
		s.Expire("a")
	}
}
