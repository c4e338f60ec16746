package main

import (
	"math"
	"slices"
)

// median is the middle value, ignoring NaN; NaN of none.
func median(values []float64) float64 {
	known := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(known) == 0 {
		return math.NaN()
	}
	slices.Sort(known)
	n := len(known)
	return (known[(n-1)/2] + known[n/2]) / 2
}

// enoughTurns is how many turns each contender must have had on average before their numbers can be
// compared.
const enoughTurns = 10

// fairness is the turns of the most-served contender over those of the least-served: 1 is fair,
// +Inf means that one got nothing. NaN where there were too few turns to tell.
func fairness(served []int64) float64 {
	if len(served) < 2 {
		return math.NaN()
	}
	sum := int64(0)
	for _, n := range served {
		sum += n
	}
	if sum < enoughTurns*int64(len(served)) {
		return math.NaN()
	}
	return float64(slices.Max(served)) / float64(slices.Min(served))
}
