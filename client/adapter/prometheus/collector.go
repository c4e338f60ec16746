// SPDX-License-Identifier: Apache-2.0

// Package holdfastprom shows what locks do as metrics of Prometheus:
//
//	import holdfastprom "github.com/holdfast-go/holdfast/client/adapter/prometheus"
//
//	locks := holdfastprom.New(holdfastprom.Options{})
//	prometheus.MustRegister(locks)
//	c, err := client.Open(option, client.Config{Observer: locks.Observer()})
//
// The metrics, all times in seconds:
//
//	holdfast_lock_wait_seconds{call,outcome}  from a call of TryAcquire or Acquire to its return
//	holdfast_lock_waiting                     calls of Acquire that have not returned
//	holdfast_lock_hold_seconds{end}           how long locks were held, by how that ended
//	holdfast_lock_held                        locks that are held
//	holdfast_lock_lost_total{cause}           locks that ended before their release
//	holdfast_lock_renewal_seconds{outcome}    how long renewals took
//	holdfast_connection_outages_total         renewals began to fail
//	holdfast_connection_recoveries_total      and the server answered again
//
// call is try or acquire. outcome is acquired, passed (by another goroutine of the process) or
// reentered, of a renewal renewed, or the kind of the error: busy, timeout, unreachable, closed, invalid,
// canceled; or a cause, if the lock to re-enter or to renew had ended. end is released, passed, or why the
// lock ended: expired, taken, broken, max_hold, max_renewals, abandoned, closed; unreachable if the server
// may not know of the release yet. cause is one of the first six of these.
//
// The repository's docs/observing.md says what to do when they change, and has rules for alerts;
// grafana.json beside this file is a dashboard.
package holdfastprom

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/adapter/internal/measure"
)

// Options are the settings of a Collector. The zero value is a good one.
type Options struct {
	// Group, if not nil, adds a label lock to the metrics of locks: what it makes of a lock's name. It
	// is called for each event and returns at once, the same for the same name. Each value costs some
	// hundred time series, so it returns few: "order" for "order:42". Default nil: no such label.
	Group func(name string) string
	// ConstLabels are added to all metrics. Collectors in one registry have the same names in them and
	// differ in a value, and all have a Group or none has. Default none.
	ConstLabels prometheus.Labels
}

// Collector has the metrics of the Clients that it observes. It is a prometheus.Collector, to be
// registered once, and safe for concurrent use.
type Collector struct {
	options             Options
	wait, hold, renewal *prometheus.HistogramVec
	waiting, held       *prometheus.GaugeVec
	lost                *prometheus.CounterVec
	outages, recoveries prometheus.Counter
	groups              sync.Map // those whose losses are shown, as 0 to begin with
}

// New makes a Collector. It does not block, and panics if a name of ConstLabels is invalid or taken.
func New(o Options) *Collector {
	histogram := func(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
		labels = o.labels(labels...)
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, ConstLabels: o.ConstLabels, Buckets: bounds,
		}, labels)
		v.WithLabelValues(labels...) // panics here, and not in a call of Acquire, if there is an "le" among them
		v.Reset()
		return v
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: o.ConstLabels}, o.labels())
	}
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: name, Help: help, ConstLabels: o.ConstLabels}
	}
	c := &Collector{
		options: o,
		wait:    histogram("holdfast_lock_wait_seconds", measure.WaitText, measure.WaitBounds, "call", "outcome"),
		waiting: gauge("holdfast_lock_waiting", measure.WaitingText),
		hold:    histogram("holdfast_lock_hold_seconds", measure.HoldText, measure.HoldBounds, "end"),
		held:    gauge("holdfast_lock_held", measure.HeldText),
		renewal: histogram("holdfast_lock_renewal_seconds", measure.RenewalText, measure.TripBounds, "outcome"),
		lost:    prometheus.NewCounterVec(counter("holdfast_lock_lost_total", measure.LostText), o.labels("cause")),
		outages: prometheus.NewCounter(counter("holdfast_connection_outages_total", measure.OutageText)),
		recoveries: prometheus.NewCounter(
			counter("holdfast_connection_recoveries_total", measure.RecoveryText)),
	}
	prometheus.NewRegistry().MustRegister(c)
	if o.Group == nil {
		c.begin("")
	}
	return c
}

// labels are the names of a metric's labels, that of the group first.
func (o *Options) labels(names ...string) []string {
	if o.Group == nil {
		return names
	}
	return append([]string{"lock"}, names...)
}

// values are those of labels. They must be UTF-8, and the name of a lock need not be.
func (c *Collector) values(group string, values ...string) []string {
	if c.options.Group == nil {
		return values
	}
	return append([]string{strings.ToValidUTF8(group, "?")}, values...)
}

// begin shows a group's series that would otherwise be missing until something happens: from nothing
// to 1 is no increase to Prometheus.
func (c *Collector) begin(group string) {
	if _, known := c.groups.LoadOrStore(group, nil); known {
		return
	}
	c.waiting.WithLabelValues(c.values(group)...)
	c.held.WithLabelValues(c.values(group)...)
	for _, cause := range measure.Causes {
		c.lost.WithLabelValues(c.values(group, cause)...)
	}
}

// Observer returns what tells the Collector of a Client's locks: for client.Config.Observer, of as many
// Clients as there are. client.JoinObservers joins it with others.
func (c *Collector) Observer() *client.Observer {
	return measure.Observe((*meter)(c), c.options.Group)
}

func (c *Collector) all() []prometheus.Collector {
	return []prometheus.Collector{c.wait, c.waiting, c.hold, c.held, c.renewal, c.lost, c.outages, c.recoveries}
}

// Describe is for the registry.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, part := range c.all() {
		part.Describe(to)
	}
}

// Collect is for the registry.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, part := range c.all() {
		part.Collect(to)
	}
}

// meter is a Collector as what happens to locks is carried to it.
type meter Collector

var _ measure.Meter = (*meter)(nil)

func (m *meter) values(group string, values ...string) []string {
	return (*Collector)(m).values(group, values...)
}

func (m *meter) Waiting(_ context.Context, group string, change int) {
	m.waiting.WithLabelValues(m.values(group)...).Add(float64(change))
}

func (m *meter) Waited(_ context.Context, group, call, outcome string, d time.Duration) {
	m.wait.WithLabelValues(m.values(group, call, outcome)...).Observe(d.Seconds())
}

func (m *meter) Held(_ context.Context, group string, change int) {
	(*Collector)(m).begin(group)
	m.held.WithLabelValues(m.values(group)...).Add(float64(change))
}

func (m *meter) Ended(group, end string, d time.Duration) {
	m.hold.WithLabelValues(m.values(group, end)...).Observe(d.Seconds())
}

func (m *meter) Lost(group, cause string) { m.lost.WithLabelValues(m.values(group, cause)...).Inc() }

func (m *meter) Renewed(group, outcome string, d time.Duration) {
	m.renewal.WithLabelValues(m.values(group, outcome)...).Observe(d.Seconds())
}

func (m *meter) Outage()   { m.outages.Inc() }
func (m *meter) Recovery() { m.recoveries.Inc() }
