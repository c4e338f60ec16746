// SPDX-License-Identifier: Apache-2.0

package holdfastprom_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	holdfastprom "github.com/holdfast-go/holdfast/client/adapter/prometheus"
	"github.com/holdfast-go/holdfast/client/locktest"
)

var ctx = context.Background()

func TestAHoldAndAWait(t *testing.T) {
	t.Parallel()
	bubble(t, holdfastprom.Options{}, func(t *testing.T, s *locktest.Server, metrics *holdfastprom.Collector, m *metrics) {
		a, b := s.Client(client.Config{Observer: metrics.Observer()}), s.Client(client.Config{Observer: metrics.Observer()})
		l, err := a.TryAcquire(ctx, "x")
		require.NoError(t, err)
		waiting := make(chan *client.Lock)
		go func() {
			l, err := b.Acquire(ctx, "x")
			require.NoError(t, err)
			waiting <- l
		}()
		time.Sleep(15 * time.Second)
		require.Equal(t, 1.0, m.value("holdfast_lock_held"))
		require.Equal(t, 1.0, m.value("holdfast_lock_waiting"))
		_, err = b.TryAcquire(ctx, "x")
		require.ErrorIs(t, err, client.ErrBusy)
		require.NoError(t, l.Release(ctx))
		next := <-waiting
		require.Equal(t, 0.0, m.value("holdfast_lock_waiting"))
		require.Equal(t, 1.0, m.value("holdfast_lock_wait_seconds", "call", "try", "outcome", "acquired"))
		require.Equal(t, 1.0, m.value("holdfast_lock_wait_seconds", "call", "try", "outcome", "busy"))
		require.Equal(t, 1.0, m.value("holdfast_lock_wait_seconds", "call", "acquire", "outcome", "acquired"))
		require.InDelta(t, 15*time.Second, m.sum("holdfast_lock_wait_seconds", "call", "acquire"), float64(100*time.Millisecond))
		require.InDelta(t, 15*time.Second, m.sum("holdfast_lock_hold_seconds", "end", "released"), float64(100*time.Millisecond))
		require.GreaterOrEqual(t, m.value("holdfast_lock_renewal_seconds", "outcome", "renewed"), 1.0)
		require.NoError(t, next.Release(ctx))
		require.Equal(t, 0.0, m.value("holdfast_lock_held"))
		require.Equal(t, 0.0, m.value("holdfast_lock_lost_total", "cause", "expired"), "shown before it happens")
		problems, err := testutil.GatherAndLint(m.registry)
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}

func TestReentryIsNoHold(t *testing.T) {
	t.Parallel()
	bubble(t, holdfastprom.Options{}, func(t *testing.T, s *locktest.Server, metrics *holdfastprom.Collector, m *metrics) {
		c := s.Client(client.Config{Observer: metrics.Observer()})
		require.NoError(t, c.Do(ctx, "x", func(ctx context.Context) error {
			return c.Do(ctx, "x", func(context.Context) error {
				require.Equal(t, 1.0, m.value("holdfast_lock_held"))
				return nil
			})
		}))
		require.Equal(t, 1.0, m.value("holdfast_lock_wait_seconds", "outcome", "reentered"))
		require.Equal(t, 1.0, m.value("holdfast_lock_hold_seconds"))
		require.Equal(t, 0.0, m.value("holdfast_lock_held"))
	})
}

func TestLosses(t *testing.T) {
	t.Parallel()
	for cause, lose := range map[string]func(s *locktest.Server, l *client.Lock, stop func()){
		"broken":    func(s *locktest.Server, _ *client.Lock, _ func()) { time.Sleep(11 * time.Second); s.Break("x", "why") },
		"taken":     func(s *locktest.Server, _ *client.Lock, _ func()) { s.Take("x", time.Minute) },
		"expired":   func(s *locktest.Server, l *client.Lock, _ func()) { s.Cut(); <-l.Context().Done(); s.Restore() },
		"max_hold":  func(*locktest.Server, *client.Lock, func()) { time.Sleep(time.Minute) },
		"abandoned": func(_ *locktest.Server, _ *client.Lock, stop func()) { stop(); time.Sleep(10 * time.Second) },
	} {
		t.Run(cause, func(t *testing.T) {
			bubble(t, holdfastprom.Options{}, func(t *testing.T, s *locktest.Server, metrics *holdfastprom.Collector, m *metrics) {
				c := s.Client(client.Config{Lease: 3 * time.Second, Observer: metrics.Observer(), MaxHold: time.Minute})
				within, stop := context.WithCancel(ctx)
				defer stop()
				l, err := c.Acquire(within, "x")
				require.NoError(t, err)
				lose(s, l, stop)
				<-l.Context().Done()
				require.ErrorIs(t, l.Release(ctx), client.ErrLost)
				require.Equal(t, 1.0, m.value("holdfast_lock_lost_total", "cause", cause))
				require.Equal(t, 1.0, m.value("holdfast_lock_hold_seconds", "end", cause))
				require.Equal(t, 0.0, m.value("holdfast_lock_held"))
				outages := 0.0
				if cause == "expired" {
					outages = 1
					_, err := c.Inspect(ctx, "x")
					require.NoError(t, err)
					require.GreaterOrEqual(t, m.value("holdfast_lock_renewal_seconds", "outcome", "unreachable"), 1.0)
				}
				require.Equal(t, outages, m.value("holdfast_connection_outages_total"))
				require.Equal(t, outages, m.value("holdfast_connection_recoveries_total"))
			})
		})
	}
}

// The names of locks are no labels, but what Group makes of them is.
func TestGroups(t *testing.T) {
	t.Parallel()
	kind := func(name string) string { kind, _, _ := strings.Cut(name, ":"); return kind }
	bubble(t, holdfastprom.Options{Group: kind}, func(t *testing.T, s *locktest.Server, metrics *holdfastprom.Collector, m *metrics) {
		c := s.Client(client.Config{Observer: metrics.Observer()})
		for _, name := range []string{"order:1", "order:2", "report:1", "\xff:1", "\xfe:1"} {
			_, err := c.Acquire(ctx, name)
			require.NoError(t, err)
		}
		require.Equal(t, 2.0, m.value("holdfast_lock_held", "lock", "order"))
		require.Equal(t, 1.0, m.value("holdfast_lock_held", "lock", "report"))
		require.Equal(t, 2.0, m.value("holdfast_lock_held", "lock", "?"), "what is no UTF-8")
		require.Equal(t, 0.0, m.value("holdfast_lock_lost_total", "lock", "report", "cause", "taken"))
		c.Close()
		require.Equal(t, 0.0, m.value("holdfast_lock_held", "lock", "order"))
		require.Equal(t, 2.0, m.value("holdfast_lock_hold_seconds", "lock", "order", "end", "closed"))
	})
}

// Whatever happens, nothing is held and nobody waits in the metrics when nothing is and nobody does.
func TestTheGaugesReturnToZero(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		bubble(t, holdfastprom.Options{}, func(t *testing.T, s *locktest.Server, metrics *holdfastprom.Collector, m *metrics) {
			c := s.Client(client.Config{Lease: time.Second, Observer: metrics.Observer()})
			over, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			var work sync.WaitGroup
			for i := range 6 {
				work.Go(func() {
					r := rand.New(rand.NewPCG(seed, uint64(i)))
					for over.Err() == nil {
						within, cancel := context.WithTimeout(over, time.Duration(1+r.IntN(2000))*time.Millisecond)
						err := c.Do(within, []string{"a", "b"}[r.IntN(2)], func(context.Context) error {
							time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
							return nil
						})
						cancel()
						if err != nil {
							time.Sleep(time.Millisecond)
						}
					}
				})
			}
			for range 10 {
				time.Sleep(time.Second)
				s.Delete("a")
				s.Cut()
				time.Sleep(500 * time.Millisecond)
				s.Restore()
			}
			work.Wait()
			require.Equal(t, 0.0, m.value("holdfast_lock_held"))
			require.Equal(t, 0.0, m.value("holdfast_lock_waiting"))
			require.Positive(t, m.value("holdfast_lock_lost_total", "cause", "taken"))
		})
	}
}

// As New's comment says: an "le" would panic in the first call of Acquire, the others when it is registered.
func TestNewPanicsAboutLabels(t *testing.T) {
	for _, name := range []string{"call", "outcome", "cause", "end", "le", "__x", "\xff", ""} {
		o := holdfastprom.Options{ConstLabels: prometheus.Labels{name: "x"}}
		require.Panics(t, func() { holdfastprom.New(o) }, name)
	}
	group := func(name string) string { return name }
	o := holdfastprom.Options{Group: group, ConstLabels: prometheus.Labels{"lock": "x"}}
	require.Panics(t, func() { holdfastprom.New(o) })
	holdfastprom.New(holdfastprom.Options{Group: group, ConstLabels: prometheus.Labels{"redis": "x"}})
}
