package main

import (
	"context"
	"fmt"
	"time"
)

// workload is one section of the report.
type workload struct {
	Name    string
	Title   string
	Note    string   // how to read it
	Columns []string // metrics, in the order of the report
	Cells   []cell
}

// cell is one case of a workload, measured for each rival in each round.
type cell struct {
	Case   string
	Takes  func(r rival) bool // whether a rival takes part; nil: all but baselines
	Tuned  bool               // the tuned ones too
	Level  bool               // those too that are for levels
	Rounds int                // of rivals other than holdfast; 0: as many as there are
	Run    func(ctx context.Context, w *world, r rival) (values, error)
}

// takes says whether a rival has a run of the cell in a round, counted from 0.
func (c cell) takes(r rival, round int) bool {
	if c.Rounds > 0 && round >= c.Rounds && r.Name != holdfastName {
		return false
	}
	if r.Tuned && !c.Tuned {
		return false
	}
	if r.Level && !c.Level {
		return false
	}
	if c.Takes == nil {
		return !r.Baseline
	}
	return c.Takes(r)
}

// workloads returns all, shorter if quick.
func workloads(quick bool) []workload {
	return []workload{uncontended(quick), hot(quick), try(quick), kill(quick), held(quick), capacity(quick), ablation(quick),
		cluster(quick), levels(quick)}
}

// lease is the one of all locks whose lease does not matter.
const lease = 10 * time.Second

// pace is how long a hammer warms up and how long it measures.
type pace struct{ warm, measure time.Duration }

func paceOf(quick bool) pace {
	if quick {
		return pace{50 * time.Millisecond, 100 * time.Millisecond}
	}
	return pace{300 * time.Millisecond, time.Second}
}

// schedule sets the window of a hammer that starts now.
func (h *hammer) schedule(p pace) {
	h.begin = time.Now().Add(p.warm)
	h.end = h.begin.Add(p.measure)
}

// watched runs a hammer and reads the server's account at the begin and the end of its window.
func (w *world) watched(ctx context.Context, s *site, r rival, h hammer, p pace) (values, error) {
	var before, after account
	read := func(into *account) func() error {
		return func() (err error) {
			*into, err = w.account(s)
			return err
		}
	}
	h.onBegin, h.onEnd = read(&before), read(&after)
	h.schedule(p)
	t, err := h.run(ctx)
	if err == nil {
		err = t.check(r, h.guard)
	}
	if err != nil {
		return nil, err
	}
	return valuesOf(r, t, after.sub(before)), nil
}

// check finds out whether the lock did what a lock is for; g is nil if it guarded nothing.
func (t tally) check(r rival, g *guard) error {
	if g != nil {
		if err := g.check(t.Taken); err != nil {
			return err
		}
	}
	if t.Stranded > 0 && r.Name == holdfastName {
		return fmt.Errorf("%d were %w", t.Stranded, errStranded)
	}
	return nil
}

// names returns n names of locks.
func names(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s:%d", prefix, i)
	}
	return list
}
