package main

import (
	"context"
	"errors"
	"fmt"
)

func try(quick bool) workload {
	t := workload{
		Name: "try", Title: "Try on a lock that another holds", Columns: without(usual, mFair),
		Note: "One client asks without waiting, and is refused each time; all numbers are per try.",
	}
	for _, n := range []int{1, 64} {
		title := caseTryAlone
		if n > 1 {
			title = fmt.Sprintf("%d goroutines", n)
		}
		t.Cells = append(t.Cells, cell{Case: title, Run: func(ctx context.Context, w *world, r rival) (values, error) {
			return w.try(ctx, r, n, paceOf(quick))
		}})
	}
	return t
}

const caseTryAlone = "1 goroutine"

func (w *world) try(ctx context.Context, r rival, goroutines int, p pace) (values, error) {
	s, err := w.whereFor(ctx, r)
	if err != nil {
		return nil, err
	}
	opened, err := openMany(ctx, r, s.place, use{Lease: lease}, 2)
	if err != nil {
		return nil, err
	}
	defer closeAll(opened)
	h, err := opened[0].TryLock(ctx, hotName)
	if err != nil {
		return nil, err
	}
	var tries hammer
	for range goroutines {
		tries.contenders = append(tries.contenders, contender{refused{opened[1]}, []string{hotName}})
	}
	v, err := w.watched(ctx, s, r, tries, p)
	delete(v, mFair)
	return v, errors.Join(err, h.Unlock())
}

// refused makes a hammer of tries: its Lock is a TryLock that must fail.
type refused struct{ locker }

func (f refused) Lock(ctx context.Context, name string) (hold, error) {
	_, err := f.TryLock(ctx, name)
	if err == nil {
		return hold{}, errors.New("the lock is broken: a try took a lock that another holds")
	}
	if !errors.Is(err, errBusy) {
		return hold{}, err
	}
	return hold{Unlock: func() error { return nil }}, nil
}
