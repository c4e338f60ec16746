package main

import (
	"fmt"
	"math"
	"time"
)

// bar is what holdfast must reach.
type bar struct {
	Workload string
	Wanted   string
	Measure  func(results) (x float64, text string, met bool) // x is NaN if it was not measured
}

// The cases that bars are about.
var (
	crowdProcess = crowd{0, 1, 32, 0}.String()
	crowdMany    = crowd{0, 128, 1, 0}.String()
	crowdSlow    = crowd{0, 8, 1, 20 * time.Millisecond}.String()
)

func bars() []bar {
	return []bar{
		timesBaseline(setnxName, 1.2),
		timesBaseline(setnxTunedName, 1.2),
		timesBest("uncontended", caseDistinct, 1.3, false),
		timesBest("uncontended", caseDistinct, 1.3, true),
		timesBest("hot", crowdProcess, 30, false),
		timesBest("hot", crowdMany, 3, false),
		atMost("hot", crowdMany, mFair, "most / least served", 1.1, ""),
		atMost("hot", crowdMany, mCommands, "commands for each lock", 2.2, ""),
		atMost("hot", crowdSlow, mIdle, "idle time between holds, median", 0.3, " ms"),
		atMost("hot", crowdSlow, mCommands, "commands for each lock", 2.2, ""),
		timesBest("try", caseTryAlone, 50, false),
		// A handful of commands may be needed to learn that the lock is held.
		atMost("try", caseTryAlone, mCommands, "no commands for each try", 0.001, ""),
		{"killed holder, " + caseCrowdedDB, "next holder within 50 ms, 20 times of 20", func(r results) (float64, string, bool) {
			in, of := r.get("kill", caseCrowdedDB, holdfastName, mLateIn), r.get("kill", caseCrowdedDB, holdfastName, mLateOf)
			latest := r.get("kill", caseCrowdedDB, holdfastName, mLateMax)
			return in, fmt.Sprintf("%.0f of %.0f, latest %s ms", in, of, show(latest, true)), in == of && of >= 20
		}},
		{caseHeld(heldMost) + " held", "no goroutine for each lock", func(r results) (float64, string, bool) {
			x := r.get("held", caseHeld(heldMost), holdfastName, mRoutines)
			return x, show(x, true) + " goroutines in all", x < heldMost/1000
		}},
		atMost("held", caseHeld(heldMost), mHeap, "heap for each lock", 1024, " bytes"),
		atMost("held", caseHeld(heldMost), mMissed, "no renewal missed", 0, " missed"),
		{"server capacity", "at least 0.45 of bare functions", func(r results) (float64, string, bool) {
			x := r.get("capacity", caseCapacity, holdfastName, mPairs) / r.get("capacity", caseCapacity, bareName, mPairs)
			return x, show(x, true), x >= 0.45
		}},
	}
}

// timesBaseline wants the cost of a lock that nobody else wants to be at most so many times that of
// the bare commands.
func timesBaseline(baseline string, times float64) bar {
	return bar{"uncontended, " + caseDistinct, fmt.Sprintf("at most %v times %s", times, baseline), func(r results) (float64, string, bool) {
		x := r.get("uncontended", caseDistinct, baseline, mRate) / r.get("uncontended", caseDistinct, holdfastName, mRate)
		return x, show(x, true) + " times", x <= times
	}}
}

// timesBest wants holdfast's rate to be so many times that of the best rival.
func timesBest(workload, title string, times float64, tuned bool) bar {
	wanted := fmt.Sprintf("at least %v times the best rival", times)
	if tuned {
		wanted += " that has our connection settings"
	}
	return bar{workload + ", " + title, wanted, func(r results) (float64, string, bool) {
		name, rate := r.best(workload, title, tuned)
		x := r.get(workload, title, holdfastName, mRate) / rate
		return x, fmt.Sprintf("%s times %s", show(x, true), name), x >= times
	}}
}

// atMost wants a metric of holdfast to be at most so much.
func atMost(workload, title, metric, what string, most float64, unit string) bar {
	wanted := fmt.Sprintf("%s: at most %v%s", what, most, unit)
	return bar{workload + ", " + title, wanted, func(r results) (float64, string, bool) {
		x := r.get(workload, title, holdfastName, metric)
		return x, show(x, true) + unit, x <= most
	}}
}

// verdict is the bar's last two columns. What was not measured is neither met nor missed.
func (b bar) verdict(r results) (measured, verdict string) {
	x, text, met := b.Measure(r)
	switch {
	case math.IsNaN(x):
		return "–", "not measured"
	case met:
		return text, "met"
	}
	return text, "**not met**"
}
