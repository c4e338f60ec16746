// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// spread is the median of some numbers, the least and the most.
type spread struct{ median, least, most float64 }

// spreadOf is not known of none.
func spreadOf(list []float64) (s spread, known bool) {
	n := len(list)
	if n == 0 {
		return s, false
	}
	list = slices.Sorted(slices.Values(list))
	// halved first: two that are endless would be more than that
	return spread{list[(n-1)/2]/2 + list[n/2]/2, list[0], list[n-1]}, true
}

func (s spread) String() string {
	return fmt.Sprintf("%s [%s–%s]", show(s.median), show(s.least), show(s.most))
}

// ratios are x over y of a metric, for each round in which both know it. Nothing over nothing is 1.
func ratios(x, y []values, metric string) (list []float64) {
	for i := range min(len(x), len(y)) {
		a, known := x[i][metric]
		b, also := y[i][metric]
		switch {
		case !known || !also:
		case a == b:
			list = append(list, 1)
		default:
			list = append(list, min(endless, a/b))
		}
	}
	return list
}

// endless is a ratio to nothing: one of the contenders was never served. JSON has no infinity.
const endless = math.MaxFloat64

// enoughTurns is how many turns each contender must have had on average before their numbers can be
// compared.
const enoughTurns = 10

// fairness is the turns of the most-served contender over those of the least-served: 1 is fair. It
// is not known where there were too few turns to tell.
func fairness(served []int64) (ratio float64, known bool) {
	sum := int64(0)
	for _, n := range served {
		sum += n
	}
	if len(served) < 2 || sum < enoughTurns*int64(len(served)) {
		return 0, false
	}
	return min(endless, float64(slices.Max(served))/float64(slices.Min(served))), true
}

// show writes a number with three digits that matter.
func show(x float64) string {
	digits := func(n int) string { return strconv.FormatFloat(x, 'f', n, 64) }
	switch size := math.Abs(x); {
	case size >= endless/2:
		return "∞"
	case size >= 1000:
		return thousands(int(math.Round(x)))
	case x == math.Trunc(x) || size >= 100:
		return digits(0)
	case size >= 10:
		return digits(1)
	case size >= 0.01:
		return digits(2)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// thousands puts a comma between groups of three digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
