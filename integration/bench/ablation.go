package main

import (
	"context"
	"strconv"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// step is a function of which the cost is measured, and what its last redis.call() is good for.
type step struct {
	function string
	title    string
	release  bool // the lock must be held before
}

// steps are cumulative within acquire and within release.
var steps = []step{
	{"bench_acquire_0", "acquire: no redis.call()", false},
	{"bench_acquire_1", "+ HLEN: is it free? A count is the cheapest answer that also tells a string of another service", false},
	{"bench_acquire_2", "+ TIME: fencing tokens that outlive the key and a failover, and one end of the lease for all who ask", false},
	{"bench_acquire_3", "+ HSET: owner, end and token, in a hash, so that the line can be in the same key", false},
	{"bench_acquire_4", "+ PEXPIREAT: no key without an end", false},
	{functions.Acquire, "holdfast_acquire itself: its arguments are checked too", false},
	{"bench_release_1", "release: HMGET: whose is it, does anybody wait, is it held more than once", true},
	{"bench_release_2", "+ DEL: free", true},
	{functions.Release, "holdfast_release itself", true},
}

func ablation(quick bool) workload {
	a := workload{
		Name: "ablation", Title: "What each redis.call() buys", Columns: []string{mStepNS},
		Note: "The server's CPU time of functions that make the same calls as holdfast_acquire and holdfast_release on a free lock, one more in each step; " +
			"the difference between two lines is the price of a call. The locks stay until all are taken, so HSET pays for a database that grows, and the sums " +
			"are higher than the cost of a pair above.",
	}
	for _, st := range steps {
		a.Cells = append(a.Cells, cell{
			Case:  st.title,
			Takes: func(r rival) bool { return r.Bare },
			Run: func(ctx context.Context, w *world, _ rival) (values, error) {
				return w.step(ctx, st, callsOf(quick))
			},
		})
	}
	return a
}

func (w *world) step(ctx context.Context, st step, n int) (values, error) {
	s, err := w.redis(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.loadBench(ctx); err != nil {
		return nil, err
	}
	c, err := rueidis.NewClient(s.place.option())
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ttl := strconv.FormatInt(captureLease.Milliseconds(), 10)
	call := []string{"FCALL", st.function, "1", captureName, bareOwner}
	if st.release {
		if err := repeat(ctx, c, [][]string{{"FCALL", functions.Acquire, "1", captureName, bareOwner, ttl}}, n); err != nil {
			return nil, err
		}
	} else {
		call = append(call, ttl)
	}
	before, err := w.account(s)
	if err != nil {
		return nil, err
	}
	if err := repeat(ctx, c, [][]string{call}, n); err != nil {
		return nil, err
	}
	after, err := w.account(s)
	if err != nil {
		return nil, err
	}
	return values{mStepNS: float64(after.sub(before).CPU.Nanoseconds()) / float64(n)}, nil
}
