package main

import (
	"math"
	"slices"
)

// where names one cell of one rival.
type where struct{ Workload, Case, Rival string }

// results are the values of all rounds.
type results map[where][]values

// summed are the metrics that are added over the rounds; of all others the median counts, of the
// latest the maximum.
var summed = []string{mLateIn, mLateOf, mStranded}

// get returns a metric over all rounds; NaN if it was not measured.
func (r results) get(workload, title, rival, metric string) float64 {
	var all []float64
	for _, v := range r[where{workload, title, rival}] {
		if x, ok := v[metric]; ok && !math.IsNaN(x) {
			all = append(all, x)
		}
	}
	switch {
	case len(all) == 0:
		return math.NaN()
	case slices.Contains(summed, metric):
		sum := 0.0
		for _, x := range all {
			sum += x
		}
		return sum
	case metric == mLateMax || metric == mMissed:
		return slices.Max(all)
	}
	return median(all)
}

// best returns the rival with the highest rate in a cell, baselines and holdfast aside; those that
// are tuned, or not.
func (r results) best(workload, title string, tuned bool) (name string, rate float64) {
	rate = math.NaN()
	for _, v := range rivals() {
		if v.Baseline || v.Name == holdfastName || v.Tuned != tuned {
			continue
		}
		if x := r.get(workload, title, v.Name, mRate); !math.IsNaN(x) && !(x <= rate) {
			name, rate = v.Name, x
		}
	}
	return name, rate
}
