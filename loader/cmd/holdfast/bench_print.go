package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/bench"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

func (a *app) printBench(f *benchFlags, at surroundings, begun time.Time, r bench.Report, code int) {
	if a.cfg.json {
		h := a.head(nil)
		h.ExitCode = code
		at.Servers = nonNil(at.Servers)
		a.printJSON(struct {
			head
			Begun time.Time `json:"begun"`
			surroundings
			Prefix   string  `json:"prefix"`  // with the random part
			Seconds  float64 `json:"seconds"` // as asked for
			Workers  int     `json:"workers"`
			Locks    int     `json:"locks"`
			LeaseMS  int64   `json:"lease_ms"`
			GuardMS  int64   `json:"guard_ms"`
			Replicas int     `json:"replicas"`
			bench.Report
		}{h, begun.UTC().Truncate(time.Second), at, f.ownPrefix, f.For.Seconds(), f.Workers, f.Locks,
			f.Lease.Milliseconds(), f.guard.Milliseconds(), f.replicas, r})
	} else {
		fmt.Fprintln(a.stdout, at)
		benchTable(r, terminal.PainterFor(a.stdout)).Print(a.stdout)
		for _, line := range benchWords(f, r) {
			fmt.Fprintln(a.stdout, line)
		}
		a.printFailures(r)
	}
	if r.Interrupted {
		fmt.Fprintln(a.stderr, "holdfast bench: interrupted: this is what was measured until then")
	}
	if r.Left > 0 {
		a.sayLeft(f, r.Left)
	}
}

func (a *app) sayLeft(f *benchFlags, locks int) {
	fmt.Fprintf(a.stderr, "holdfast bench: locks under %s that may be left: %d; they end with their lease\n",
		printable(f.ownPrefix), locks)
}

// benchTable has a line for each kind of call.
func benchTable(r bench.Report, paint terminal.Painter) *terminal.Table {
	table := &terminal.Table{Painter: paint}
	table.Head("PART", "CALL", "WORKERS", "COUNT", "PER SECOND", "P50 MS", "P95 MS", "P99 MS", "MAX MS", "ROUND TRIPS")
	row := func(part bench.Part, call string, workers int, count int64, rate float64, l bench.Latency, trips float64) {
		texts := []string{string(part), call, fmt.Sprint(workers), fmt.Sprint(count), fmt.Sprintf("%.0f", rate)}
		for _, v := range []float64{l.P50, l.P95, l.P99, l.Max} {
			texts = append(texts, fmt.Sprintf("%.3f", v))
		}
		if trips > 0 {
			texts = append(texts, fmt.Sprintf("%.2f", trips))
		} else {
			texts = append(texts, "-")
		}
		table.Row(terminal.Cells(texts...)...)
	}
	trips := func(part bench.Part, call string, t *bench.Trips) {
		if t != nil {
			row(part, call, t.Workers, t.Count, t.PerSecond, t.MS, t.RoundTrips)
		}
	}
	pairs := func(part bench.Part, p *bench.Pairs) {
		if p != nil {
			row(part, "acquire", p.Workers, p.Pairs, p.PairsPerSecond, p.AcquireMS, p.AcquireRoundTrips)
			row(part, "release", p.Workers, p.Pairs, p.PairsPerSecond, p.ReleaseMS, p.ReleaseRoundTrips)
		}
	}
	trips(bench.RoundTrip, "inspect", r.RoundTrip)
	pairs(bench.Alone, r.Alone)
	pairs(bench.Parallel, r.Parallel)
	if t := r.Contended; t != nil {
		row(bench.Contended, "wait", t.Workers, t.HandOffs, t.HandOffsPerSecond, t.WaitMS, 0)
		row(bench.Contended, "hand-off", t.Workers, t.HandOffs, t.HandOffsPerSecond, t.HandOffMS, t.HandOffRoundTrips)
	}
	trips(bench.Renewal, "renew", r.Renewal)
	return table
}

// benchWords say what the numbers mean, of each part that has some.
func benchWords(f *benchFlags, r bench.Report) []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.RoundTrip.Count > 0 {
		say("A call that only reads takes %.3f ms from here: a round trip.", r.RoundTrip.MS.P50)
	}
	if p := r.Alone; p != nil && p.Pairs > 0 {
		say("A lock that nobody else wants costs %.2f round trips to take and %.2f to give back.",
			p.AcquireRoundTrips, p.ReleaseRoundTrips)
	}
	if p := r.Parallel; p != nil && p.Pairs > 0 {
		say("%d workers with locks of their own take and give back %.0f per second.", p.Workers, p.PairsPerSecond)
	}
	if t := r.Contended; t != nil && t.HandOffs > 0 {
		say("A lock that %d workers want goes from one to the next %.0f times per second; each got it %d to %d times.",
			t.Workers, t.HandOffsPerSecond, t.ServedMin, t.ServedMax)
	}
	if t := r.Renewal; t != nil && t.Count > 0 {
		say("A renewal takes %.2f round trips; a lock that is held is renewed every %s.", t.RoundTrips, short(f.Lease/3))
	}
	return lines
}

func (a *app) printFailures(r bench.Report) {
	all := r.Errors()
	paint := terminal.PainterFor(a.stdout)
	for _, part := range bench.Parts() {
		for _, one := range all[part] {
			line := fmt.Sprintf("%s: %d calls failed: %s", part, one.Count, strings.ReplaceAll(one.Kind, "_", " "))
			fmt.Fprintf(a.stdout, "%s: %s\n", paint.Paint(terminal.Red, line), printable(one.First))
		}
	}
}
