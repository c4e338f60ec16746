package main

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

func cluster(quick bool) workload {
	sizes := []int{1, 10, 100, 1000, 10_000, 100_000, 1_000_000}
	if quick {
		sizes = []int{1, 1000}
	}
	c := workload{
		Name: "cluster", Title: "Three primaries", Columns: append([]string{mSpread}, without(usual, mFair)...),
		Note: "A Cluster of three primaries with a replica each, all on this machine. One client, 64 goroutines on distinct names, while so many other locks " +
			"are held. The spread is the calls of the busiest primary over those of the laziest.",
	}
	for _, n := range sizes {
		takes := func(r rival) bool { return !r.Etcd && !r.Bare && (n == 1 || r.Name == holdfastName || r.Baseline) }
		c.Cells = append(c.Cells, cell{Case: caseOthers(n), Takes: takes, Run: func(ctx context.Context, w *world, r rival) (values, error) {
			s, err := w.cluster(ctx)
			if err != nil {
				return nil, err
			}
			if err := s.fill(ctx, r, n); err != nil {
				return nil, err
			}
			return w.spread(ctx, s, r, 64, 6400, paceOf(quick))
		}})
	}
	return c
}

func caseOthers(n int) string {
	if n == 1 {
		return "1 other lock"
	}
	return thousands(fmt.Sprint(n)) + " other locks"
}

// fill holds n locks for an hour, without a client that renews them.
func (s *site) fill(ctx context.Context, r rival, n int) error {
	c, err := rueidis.NewClient(s.place.option())
	if err != nil {
		return err
	}
	defer c.Close()
	const hour = "3600000"
	command := []string{"SET", captureName, bareOwner, "NX", "PX", hour}
	if r.Name == holdfastName {
		command = []string{"FCALL", functions.Acquire, "1", holdfastKey(captureName), bareOwner, hour}
	}
	return repeat(ctx, c, [][]string{command}, n)
}
