// SPDX-License-Identifier: Apache-2.0

package holdfastotel

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast/client/adapter/internal/measure"
)

// The attributes of metrics; spans have them too.
const (
	groupKey   = attribute.Key("holdfast.lock.group")
	callKey    = attribute.Key("holdfast.call")
	outcomeKey = attribute.Key("holdfast.outcome")
	endKey     = attribute.Key("holdfast.end")
	causeKey   = attribute.Key("holdfast.cause")
)

// meter carries what happens to locks to the instruments.
type meter struct {
	grouped             bool
	wait, hold, renewal metric.Float64Histogram
	waiting, held       metric.Int64UpDownCounter
	lost                metric.Int64Counter
	outages, recoveries metric.Int64Counter
	sets                sync.Map // of series: metric.MeasurementOption, as many as there are series
	groups              sync.Map // those that had a hold
}

var _ measure.Meter = (*meter)(nil)

// series are the attributes of a measurement. A word is "" where it has no second one.
type series struct {
	group, word, second string
	key                 attribute.Key // of word
}

func newMeter(from metric.Meter, grouped bool) (*meter, error) {
	m := &meter{grouped: grouped}
	var errs []error
	histogram := func(name, text string, bounds []float64) metric.Float64Histogram {
		h, err := from.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	upDown := func(name, unit, text string) metric.Int64UpDownCounter {
		c, err := from.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return c
	}
	counter := func(name, unit, text string) metric.Int64Counter {
		c, err := from.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		errs = append(errs, err)
		return c
	}
	m.wait = histogram("holdfast.lock.wait.duration", measure.WaitText, measure.WaitBounds)
	m.waiting = upDown("holdfast.lock.waiting", "{call}", measure.WaitingText)
	m.hold = histogram("holdfast.lock.hold.duration", measure.HoldText, measure.HoldBounds)
	m.held = upDown("holdfast.lock.held", "{lock}", measure.HeldText)
	m.renewal = histogram("holdfast.lock.renewal.duration", measure.RenewalText, measure.TripBounds)
	m.lost = counter("holdfast.lock.lost", "{lock}", measure.LostText)
	m.outages = counter("holdfast.connection.outages", "{outage}", measure.OutageText)
	m.recoveries = counter("holdfast.connection.recoveries", "{outage}", measure.RecoveryText)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	m.outages.Add(context.Background(), 0)
	m.recoveries.Add(context.Background(), 0)
	if !grouped {
		m.zero("")
	}
	return m, nil
}

// zero shows a group's losses, and outages, as 0. From nothing to 1 is no increase to Prometheus.
func (m *meter) zero(group string) {
	m.outages.Add(context.Background(), 0)
	m.recoveries.Add(context.Background(), 0)
	for _, cause := range measure.Causes {
		m.lost.Add(context.Background(), 0, m.set(series{group: group, key: causeKey, word: cause}))
	}
}

// set is the attributes of s, which are made once.
func (m *meter) set(s series) metric.MeasurementOption {
	if known, ok := m.sets.Load(s); ok {
		return known.(metric.MeasurementOption)
	}
	var list []attribute.KeyValue
	if m.grouped {
		list = append(list, text(groupKey, s.group))
	}
	if s.word != "" {
		list = append(list, s.key.String(s.word))
	}
	if s.second != "" {
		list = append(list, outcomeKey.String(s.second))
	}
	made, _ := m.sets.LoadOrStore(s, metric.WithAttributeSet(attribute.NewSet(list...)))
	return made.(metric.MeasurementOption)
}

func (m *meter) Waiting(ctx context.Context, group string, change int) {
	m.waiting.Add(ctx, int64(change), m.set(series{group: group}))
}

func (m *meter) Waited(ctx context.Context, group, call, outcome string, d time.Duration) {
	m.wait.Record(ctx, d.Seconds(), m.set(series{group: group, key: callKey, word: call, second: outcome}))
}

func (m *meter) Held(ctx context.Context, group string, change int) {
	// Also without groups: what New shows is lost where otel.SetMeterProvider is called later.
	if _, known := m.groups.LoadOrStore(group, nil); !known {
		m.zero(group)
	}
	m.held.Add(ctx, int64(change), m.set(series{group: group}))
}

func (m *meter) Ended(group, end string, d time.Duration) {
	m.hold.Record(context.Background(), d.Seconds(), m.set(series{group: group, key: endKey, word: end}))
}

func (m *meter) Lost(group, cause string) {
	m.lost.Add(context.Background(), 1, m.set(series{group: group, key: causeKey, word: cause}))
}

func (m *meter) Renewed(group, outcome string, d time.Duration) {
	m.renewal.Record(context.Background(), d.Seconds(), m.set(series{group: group, key: outcomeKey, word: outcome}))
}

func (m *meter) Outage()   { m.outages.Add(context.Background(), 1) }
func (m *meter) Recovery() { m.recoveries.Add(context.Background(), 1) }
