// SPDX-License-Identifier: Apache-2.0

package bench

// Report is what came of a run. A part that was not measured is nil.
type Report struct {
	Interrupted bool   `json:"interrupted"` // before all parts had their time
	RoundTrip   *Trips `json:"round_trip"`
	Alone       *Pairs `json:"alone"`
	Parallel    *Pairs `json:"parallel"`
	Contended   *Turns `json:"contended"`
	Renewal     *Trips `json:"renewal"`
	// Failures are those of each part that has some.
	Failures map[Part][]Failure `json:"-"`
}

// Took is what all parts have.
type Took struct {
	Workers int       `json:"workers"`
	Seconds float64   `json:"seconds"` // with the calls that were under way at the end
	Errors  []Failure `json:"errors"`
}

// Trips are calls of one worker, one after the other.
type Trips struct {
	Took
	Count      int64   `json:"count"`
	PerSecond  float64 `json:"per_second"`
	MS         Latency `json:"ms"`
	RoundTrips float64 `json:"round_trips"` // of the medians; 0: not known
}

// Pairs are acquisitions that need not wait, each with its release.
type Pairs struct {
	Took
	Locks             int     `json:"locks"`
	Pairs             int64   `json:"pairs"`
	PairsPerSecond    float64 `json:"pairs_per_second"`
	AcquireMS         Latency `json:"acquire_ms"`
	ReleaseMS         Latency `json:"release_ms"`
	AcquireRoundTrips float64 `json:"acquire_round_trips"` // of the medians; 0: not known
	ReleaseRoundTrips float64 `json:"release_round_trips"`
}

// Turns are those of workers that want the same lock.
type Turns struct {
	Took
	Clients           int     `json:"clients"`
	HandOffs          int64   `json:"hand_offs"` // how often a worker got the lock: the sum of Served
	HandOffsPerSecond float64 `json:"hand_offs_per_second"`
	InProcess         int64   `json:"hand_offs_in_process"` // of them, those that the server had no part in
	// WaitMS is from asking to having. HandOffMS is from the begin of a release to when the next one has it,
	// over the server.
	WaitMS            Latency `json:"wait_ms"`
	HandOffMS         Latency `json:"hand_off_ms"`
	HandOffRoundTrips float64 `json:"hand_off_round_trips"` // of the medians; 0: not known
	Served            []int64 `json:"served"`               // how often each worker got it
	ServedMin         int64   `json:"served_min"`
	ServedMax         int64   `json:"served_max"`
}

// compare counts what was measured in round trips.
func (r *Report) compare() {
	trip := r.RoundTrip.MS.P50
	r.RoundTrip.RoundTrips = ratio(trip, trip)
	for _, p := range []*Pairs{r.Alone, r.Parallel} {
		if p != nil {
			p.AcquireRoundTrips, p.ReleaseRoundTrips = ratio(p.AcquireMS.P50, trip), ratio(p.ReleaseMS.P50, trip)
		}
	}
	if r.Contended != nil {
		r.Contended.HandOffRoundTrips = ratio(r.Contended.HandOffMS.P50, trip)
	}
	if r.Renewal != nil {
		r.Renewal.RoundTrips = ratio(r.Renewal.MS.P50, trip)
	}
}
