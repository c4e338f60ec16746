package main

import (
	"math"
	"slices"
	"strconv"
)

// values are the numbers of one run, by metric.
type values map[string]float64

// The metrics.
const (
	mRate      = "rate"
	mP50       = "p50"
	mP99       = "p99"
	mFair      = "fair"
	mIdle      = "idle"
	mStranded  = "stranded"
	mCommands  = "commands"
	mInside    = "inside"
	mServerCPU = "server cpu"
	mClientCPU = "client cpu"
	mAllocs    = "allocs"
	mBytes     = "bytes"

	mLate      = "late"
	mLateMax   = "late max"
	mLateIn    = "late in time"
	mLateOf    = "late of"
	mHeap      = "heap"
	mStack     = "stack"
	mRoutines  = "goroutines"
	mCPUShare  = "cpu share"
	mServShare = "server share"
	mMissed    = "missed"
	mPairs     = "pairs"
	mStepNS    = "step ns"
	mSpread    = "spread"
)

// labels head the columns of the report.
var labels = map[string]string{
	mRate: "per second", mP50: "wait p50 µs", mP99: "wait p99 µs", mFair: "most / least served",
	mIdle: "idle between holds ms", mStranded: "left waiting", mCommands: "commands", mInside: "inside scripts", mServerCPU: "server CPU µs",
	mClientCPU: "client CPU µs", mAllocs: "allocs", mBytes: "bytes",
	mLate: "late ms, median", mLateMax: "late ms, max", mLateIn: "within 50 ms", mLateOf: "kills",
	mHeap: "heap bytes a lock", mStack: "stack bytes a lock", mRoutines: "goroutines", mCPUShare: "client CPU %", mServShare: "server CPU %", mMissed: "missed",
	mPairs: "pairs per CPU second", mStepNS: "CPU ns per call of the function", mSpread: "busiest / laziest primary",
}

// usual are the columns of a workload that takes locks.
var usual = []string{mRate, mP50, mP99, mFair, mCommands, mInside, mServerCPU, mClientCPU, mAllocs, mBytes}

// valuesOf reduces a run. Costs are for each lock that was taken and given back; where none was,
// only the rate is known.
func valuesOf(r rival, t tally, a account) values {
	n := float64(t.ops())
	if n == 0 {
		return values{mRate: 0, mStranded: float64(t.Stranded)}
	}
	v := values{
		mRate:      n / t.Lasted.Seconds(),
		mP50:       t.Waits.quantile(0.5),
		mP99:       t.Waits.quantile(0.99),
		mFair:      fairness(t.Served),
		mServerCPU: float64(a.CPU.Microseconds()) / n,
		mClientCPU: float64(t.Effort.CPU.Microseconds()) / n,
		mAllocs:    float64(t.Effort.Mallocs) / n,
		mBytes:     float64(t.Effort.Bytes) / n,
		mStranded:  float64(t.Stranded),
		mIdle:      t.Idle.quantile(0.5) / 1e3,
	}
	if !r.Etcd {
		sent, inside := a.split(r)
		v[mCommands], v[mInside] = float64(sent)/n, float64(inside)/n
		if len(a.Nodes) > 1 {
			v[mSpread] = fairness(a.Nodes)
		}
	}
	return v
}

// show writes a number with three digits that matter.
func show(x float64, known bool) string {
	switch {
	case !known || math.IsNaN(x):
		return "–"
	case math.IsInf(x, 0):
		return "∞"
	case x == math.Trunc(x) && math.Abs(x) < 1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case math.Abs(x) >= 100:
		return thousands(strconv.FormatFloat(x, 'f', 0, 64))
	case math.Abs(x) >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case math.Abs(x) >= 0.01:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// thousands puts a comma between groups of three digits.
func thousands(digits string) string {
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// without returns the metrics but one.
func without(metrics []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(metrics), func(m string) bool { return m == one })
}
