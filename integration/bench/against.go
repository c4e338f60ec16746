package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// againstWorkloads are those that a change of the library or the client can make worse.
const againstWorkloads = "uncontended,hot,try,kill,held"

// pair is what both sides measured in one round.
type pair struct{ here, there values }

// runAgainst measures this checkout and another one by turns.
func runAgainst(ctx context.Context, s settings) (err error) {
	if s.rival != "" {
		return fmt.Errorf("-rival %s: rivals have no part in -against", s.rival)
	}
	if s.workload == "" {
		s.workload = againstWorkloads
	}
	d := duel{dir: s.against, measured: map[where][]pair{}}
	if d.workloads, err = chosen(workloads(s.quick), s.workload, func(w workload) string { return w.Name }); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "holdfast-bench-against-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	program, err := buildWith(ctx, s.against, tmp)
	if err != nil {
		return fmt.Errorf("-against: %w", err)
	}
	here, err := reexec.Start(roleSide, s.quick)
	if err != nil {
		return err
	}
	defer here.Kill()
	there, err := reexec.Start(roleSide, s.quick, func(cmd *exec.Cmd) { cmd.Path = program })
	if err != nil {
		return err
	}
	defer there.Kill()
	defer context.AfterFunc(ctx, func() { here.Kill(); there.Kill() })()
	load := loadAverage()
	defer func() { // of an interrupted run what it has
		fmt.Printf("Load average: %s at the begin, %s at the end.\n%s", load, loadAverage(), d.table())
	}()
	for round := range s.rounds {
		if err := d.round(ctx, round, [2]side{{"here", here}, {"there", there}}); err != nil {
			return err
		}
	}
	if err := here.Close(); err != nil {
		return err
	}
	return there.Close()
}

// duel is a comparison of two checkouts.
type duel struct {
	dir       string
	workloads []workload
	measured  map[where][]pair
}

// round measures every cell on both sides, one right after the other; who is first changes with
// each cell and each round.
func (d duel) round(ctx context.Context, round int, sides [2]side) error {
	turn := round
	for _, work := range d.workloads {
		for _, c := range work.Cells {
			at := where{work.Name, c.Case, holdfastName}
			var got [2]values
			for i := range sides {
				var err error
				if got[(turn+i)%2], err = sides[(turn+i)%2].measure(at); err != nil {
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					return err
				}
			}
			turn++
			p := pair{got[0], got[1]}
			d.measured[at] = append(d.measured[at], p)
			m := ratioMetrics(work)[0]
			fmt.Fprintf(os.Stderr, "%d %s, %s: %s %s here, %s there\n", round+1, work.Name, c.Case, labels[m], show(p.here[m], true), show(p.there[m], true))
		}
	}
	return nil
}

// ratioMetrics are the columns of a workload that tell whether it became worse, the most important
// one first.
func ratioMetrics(w workload) []string {
	telling := []string{mRate, mP99, mCommands, mServerCPU, mClientCPU, mAllocs, mLate, mLateMax, mHeap, mRoutines, mCPUShare, mServShare, mMissed}
	return slices.DeleteFunc(telling, func(m string) bool { return !slices.Contains(w.Columns, m) })
}

// table has a row for each metric of each cell: the medians of both sides, and the ratios of their
// rounds.
func (d duel) table() string {
	var b strings.Builder
	for _, work := range d.workloads {
		fmt.Fprintf(&b, "\n## %s\n\n| case | metric | here | %s | ratio, min | median | max |\n| --- | --- |%s\n", work.Title, d.dir,
			strings.Repeat(" ---: |", 5))
		for _, c := range work.Cells {
			pairs := d.measured[where{work.Name, c.Case, holdfastName}]
			for _, m := range ratioMetrics(work) {
				here, there, ratios := split(pairs, m)
				if len(ratios) == 0 {
					continue
				}
				fmt.Fprintf(&b, "| %s | %s | %s | %s | %.3f | %.3f | %.3f |\n", c.Case, labels[m], show(median(here), true), show(median(there), true),
					slices.Min(ratios), median(ratios), slices.Max(ratios))
			}
		}
	}
	return b.String()
}

// split returns a metric of all rounds in which both sides know it, and here over there for each of
// them. Nothing over nothing is 1.
func split(pairs []pair, metric string) (here, there, ratios []float64) {
	for _, p := range pairs {
		x, known := p.here[metric]
		y, also := p.there[metric]
		if !known || !also {
			continue
		}
		ratio := x / y
		if x == y {
			ratio = 1
		}
		here, there, ratios = append(here, x), append(there, y), append(ratios, ratio)
	}
	return here, there, ratios
}
