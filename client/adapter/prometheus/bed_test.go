// SPDX-License-Identifier: Apache-2.0

package holdfastprom_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	holdfastprom "github.com/holdfast-go/holdfast/client/adapter/prometheus"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// bubble runs a test in virtual time, with a registry that has the Collector's metrics. One whose time
// stands still hangs without a message: a watchdog ends it.
func bubble(t *testing.T, o holdfastprom.Options, test func(t *testing.T, s *locktest.Server, c *holdfastprom.Collector, m *metrics)) {
	t.Helper()
	dog := time.AfterFunc(2*time.Minute, func() {
		stacks := make([]byte, 1<<20)
		fmt.Fprintf(os.Stderr, "%s hangs\n%s\n", t.Name(), stacks[:runtime.Stack(stacks, true)])
		os.Exit(2)
	})
	defer dog.Stop()
	synctest.Test(t, func(t *testing.T) {
		c, m := collector(t, o)
		test(t, locktest.New(t), c, m)
	})
}

func collector(t *testing.T, o holdfastprom.Options) (*holdfastprom.Collector, *metrics) {
	t.Helper()
	c, registry := holdfastprom.New(o), prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(c))
	return c, &metrics{t, registry}
}

// metrics are what a registry has.
type metrics struct {
	t        *testing.T
	registry *prometheus.Registry
}

// find returns the one series of that name and those labels, as name and value by turns; nil if there
// is none.
func (m *metrics) find(name string, labels ...string) *dto.Metric {
	m.t.Helper()
	synctest.Wait() // a lock's context ends before the Observer is told why
	families, err := m.registry.Gather()
	require.NoError(m.t, err)
	var found *dto.Metric
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, series := range family.Metric {
			if !matches(series, labels) {
				continue
			}
			require.Nil(m.t, found, "two of %s %v", name, labels)
			found = series
		}
	}
	return found
}

func matches(series *dto.Metric, labels []string) bool {
	has := map[string]string{}
	for _, l := range series.Label {
		has[l.GetName()] = l.GetValue()
	}
	for i := 0; i < len(labels); i += 2 {
		if has[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// value is that of a counter or a gauge, and the count of a histogram; -1 if there is none.
func (m *metrics) value(name string, labels ...string) float64 {
	m.t.Helper()
	switch s := m.find(name, labels...); {
	case s == nil:
		return -1
	case s.Gauge != nil:
		return s.Gauge.GetValue()
	case s.Counter != nil:
		return s.Counter.GetValue()
	default:
		return float64(s.Histogram.GetSampleCount())
	}
}

// sum is that of a histogram, as a time.
func (m *metrics) sum(name string, labels ...string) time.Duration {
	m.t.Helper()
	s := m.find(name, labels...)
	require.NotNil(m.t, s, "%s %v", name, labels)
	return time.Duration(s.Histogram.GetSampleSum() * float64(time.Second))
}
