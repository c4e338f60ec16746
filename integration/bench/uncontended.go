package main

import (
	"context"
	"fmt"
)

func uncontended(quick bool) workload {
	all := func(r rival) bool { return !r.Bare }
	cases := []struct{ goroutines, names int }{{1, 1}, {64, 64}, {64, 100_000}}
	u := workload{
		Name: "uncontended", Title: "Uncontended: nobody waits", Columns: without(usual, mFair),
		Note: "One client. Each goroutine takes and gives back locks that no other goroutine wants at the time.",
	}
	for _, c := range cases {
		title := fmt.Sprintf("%d goroutines, %s distinct names", c.goroutines, thousands(fmt.Sprint(c.names)))
		if c.goroutines == 1 {
			title = caseAlone
		}
		u.Cells = append(u.Cells, cell{Case: title, Takes: all, Tuned: true, Run: func(ctx context.Context, w *world, r rival) (values, error) {
			s, err := w.whereFor(ctx, r)
			if err != nil {
				return nil, err
			}
			return w.spread(ctx, s, r, c.goroutines, c.names, paceOf(quick))
		}})
	}
	return u
}

const (
	caseAlone    = "1 goroutine"
	caseDistinct = "64 goroutines, 64 distinct names"
)

// spread takes locks that nobody else wants: one client, and each goroutine has its share of the
// names.
func (w *world) spread(ctx context.Context, s *site, r rival, goroutines, total int, p pace) (values, error) {
	l, err := r.Open(ctx, s.place, use{Lease: lease})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	list := names("free", total)
	share := total / goroutines
	var h hammer
	for i := range goroutines {
		h.contenders = append(h.contenders, contender{l, list[i*share : (i+1)*share]})
	}
	v, err := w.watched(ctx, s, r, h, p)
	delete(v, mFair)
	return v, err
}
