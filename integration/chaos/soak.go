// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// settled is how long all may take to come to rest: the key of a line outlives the last lease by a
// minute.
const settled = 2 * time.Minute

// soak is one long storm. What there is after its first minute must be all that there is at the
// end.
func (r *round) soak(ctx context.Context, h *history, v *servers, c *crew) error {
	first := min(time.Minute, r.Storm/2)
	if err := r.storm(ctx, h, v, c, first, r.Seed); err != nil {
		return err
	}
	early, err := r.rest(ctx, v, c)
	if err != nil {
		return err
	}
	if err := r.storm(ctx, h, v, c, r.Storm-first, r.Seed+1); err != nil {
		return err
	}
	r.calm(ctx, h, c)
	late, err := r.rest(ctx, v, c)
	if err != nil {
		return err
	}
	for _, g := range growths(early, late) {
		fmt.Printf("after %v and %v: %v\n", first, r.Storm, g)
		if g.grown() {
			h.trouble(wrong("growth", "", now(), "%v", g))
		}
	}
	return nil
}

// rest makes all workers stand, and measures when they do, no key is left, and nothing has changed
// since the last look. It is not an error if it comes not so far: then the figures say so. The
// workers go on after it.
func (r *round) rest(ctx context.Context, v *servers, c *crew) (f figures, err error) {
	if err := c.say(shutGate); err != nil {
		return f, err
	}
	tick := time.NewTicker(3 * time.Second)
	defer tick.Stop()
	for end := time.Now().Add(settled); time.Now().Before(end); {
		before := f
		if f, err = c.measure(); err != nil {
			return f, err
		}
		for _, n := range v.nodes {
			g, err := serverFigures(n)
			if err != nil {
				return f, err
			}
			f.add(g)
		}
		all := int64(len(c.places) * c.job.Workers)
		if f[resting] == all && f[keys] == 0 && f[goroutines] == before[goroutines] &&
			f[connections] == before[connections] {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return f, ctx.Err()
		}
	}
	return f, c.say(openGate)
}

// measure sums the figures of all processes.
func (c *crew) measure() (figures, error) {
	sum := figures{}
	if err := c.say(tellFigures); err != nil {
		return nil, err
	}
	for _, p := range c.places {
		select {
		case f := <-p.hear.figures:
			sum.add(f)
		case <-p.over:
			return nil, errors.New(p.name + " is gone")
		case <-time.After(patient):
			return nil, errors.New(p.name + " tells no figures")
		}
	}
	return sum, nil
}
