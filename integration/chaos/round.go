// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/oracle"
	"github.com/holdfast-go/holdfast/integration/server"
)

// round is one deployment, and one storm over it.
type round struct {
	Shape   string
	Profile string
	Seed    uint64
	Storm   time.Duration
	Soak    bool          // the storm is a long one, and what grows in it is found
	Only    string        // kinds of faults that begin with it; "": all
	Defect  string        // of the client processes, for a test
	Calm    time.Duration // until everybody has had every lock after it, at most; 0: calmWithin

	terms  terms // of Shape and Profile, set by run
	out    string
	source string // of the library; "": the real one
}

var lockNames = []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}

func (r *round) name() string { return fmt.Sprintf("%s-%s-%d", r.Shape, r.Profile, r.Seed) }

// result is what became of a round.
type result struct {
	oracle.Counts
	round      *round
	violations []violation
	kept       string // the file with the history
}

// calmWithin is how long everybody may take to get every lock when the storm is over: leases of the
// dead end first.
const calmWithin = 45 * time.Second

// run does a round. The error is one of the harness, not a violation.
func (r *round) run(ctx context.Context) (*result, error) {
	record, err := newRecord(r.out, r.name())
	if err != nil {
		return nil, err
	}
	s, err := shapeOf(r.Shape)
	if err != nil {
		return nil, errors.Join(err, record.close(false))
	}
	r.terms = termsOf(s, r.Profile)
	record.write("round", r)
	h := &history{record: record, cycled: map[string]bool{}}
	err = r.play(ctx, s, h)
	res := r.judge(h)
	if err == nil && ctx.Err() == nil && r.terms.Guard > 0 && res.Counts[numbers][entries] == 0 {
		err = errors.New("nobody got a lock in the storm, so nothing was checked")
	}
	for _, v := range res.violations {
		record.write("violation", v)
	}
	if len(res.violations) > 0 {
		res.kept = record.file.Name()
	}
	return res, errors.Join(err, record.close(res.kept != "" || err != nil))
}

func (r *round) play(ctx context.Context, s shape, h *history) (err error) {
	servers, err := startServers(ctx, s, cmp.Or(r.source, functions.Source), r.autoLoad())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.close()) }()
	d := servers.deployment
	crew, err := newCrew(h, r.out, d, job{Seed: r.Seed, Addrs: servers.addrs(), Master: d.SentinelMaster,
		Locks: lockNames, Workers: 4, Replicas: s.replicas, terms: r.terms,
		Breaks: r.Profile == profileAll || r.Profile == profileGuardAll, Quorum: s.quorum(), Long: r.long(),
		Alone: s.replicas > 0 && r.alone(), AutoLoad: r.autoLoad(), Defect: r.Defect})
	defer func() { err = errors.Join(err, crew.close()) }()
	if err != nil {
		return err
	}
	if r.Soak {
		err = r.soak(ctx, h, servers, crew)
	} else if err = r.storm(ctx, h, servers, crew, r.Storm, r.Seed); err == nil {
		r.calm(ctx, h, crew)
	}
	if err != nil {
		return err
	}
	crew.stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.killed = crew.killed // their calls need no answer
	return nil
}

// random is a generator for one choice of a round.
func (r *round) random(choice uint64) *rand.Rand { return rand.New(rand.NewPCG(r.Seed, choice)) }

// long chooses how many locks are held for long. Where it is many, most locks are held at any time,
// so that failovers strike those. Where it is few, they strike hand-offs.
func (r *round) long() float64 {
	parts := []float64{0.02, 0.02, 0.1, 0.4}
	if r.terms.Guard > 0 { // only who stays inside over a loss of memory can meet another one
		parts = []float64{0.3, 0.6}
	}
	return parts[r.random(0).IntN(len(parts))]
}

// autoLoad chooses whether Go clients load the library, in about every other round. One that is
// broken for a test must not be mended by them.
func (r *round) autoLoad() bool {
	return r.source == "" && r.random(2).IntN(2) == 0
}

// alone chooses whether all are at the level Replicas, in about every other round whose faults
// admit nothing there: then no meeting is admitted at all.
func (r *round) alone() bool {
	return r.Profile == profileReplicas && r.random(1).IntN(2) == 0
}

// storm lets the faults strike for a time, and blocks until all of them are taken back.
func (r *round) storm(ctx context.Context, h *history, v *servers, c *crew, d time.Duration, seed uint64) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	s := &storm{round: r, ctx: ctx, history: h, crew: c, servers: v}
	s.start(seed)
	s.working.Wait()
	for _, p := range c.places {
		p.wires.all.each(func(p *server.Proxy) {
			p.DropReplies(0, "")
			p.Delay(0)
			p.Resume()
		})
	}
	return v.whole()
}

// calm blocks until everybody has had every lock.
func (r *round) calm(ctx context.Context, h *history, c *crew) {
	h.mu.Lock()
	h.calm = now()
	h.mu.Unlock()
	if err := c.say(calmDown); err != nil {
		h.trouble(wrong("died", "", now(), "%v", err))
	}
	within := cmp.Or(r.Calm, calmWithin) + r.terms.Guard
	left := slices.Sorted(slices.Values(c.workers()))
	until(within, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		left = slices.DeleteFunc(left, func(w string) bool { return h.cycled[w] })
		return len(left) == 0 || ctx.Err() != nil
	})
	if len(left) > 0 && ctx.Err() == nil {
		h.trouble(wrong("stuck", "", h.calm, "%v after the storm some have not had every lock: %v", within, left))
	}
}

// judge checks the history.
func (r *round) judge(h *history) *result {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := judge(append(slices.Clone(h.faults), breaks(h.calls)...)).Exclusion(h.holds)
	res := &result{round: r, Counts: oracle.Counts{admitted: found.Admitted}, violations: slices.Clone(h.troubles)}
	res.Count(numbers, holds, len(h.holds))
	if r.terms.Guard > 0 {
		res.Count(numbers, guarded, 1)
		for _, in := range h.holds {
			if h.calm == 0 || in.Enter < h.calm {
				res.Count(numbers, entries, 1)
			}
		}
	}
	for _, f := range h.faults {
		what := faults
		if f.Error != "" {
			what = failed
		}
		res.Count(what, string(f.Kind), 1)
	}
	for _, c := range h.calls {
		if c.End == 0 {
			c.Outcome = "unknown"
		}
		res.Count(outcomes, c.Call+": "+short(c.Outcome), 1)
	}
	for _, list := range [][]violation{found.Violations, oracle.Tokens(h.holds), checkHangs(h.calls, h.faults, h.killed),
		checkStuck(h.calls, h.holds, h.calm, idle+r.terms.Guard)} {
		res.violations = append(res.violations, list...)
	}
	return res
}

// aftermath is how long requests that were on their way reach a server whose grants do not count any more.
const aftermath = time.Second

// judge is the oracle, with what it must know of these faults. All servers share one clock.
func judge(faults []*fault) *oracle.Judge {
	j := &oracle.Judge{Guard: guard, Aftermath: aftermath}
	for _, f := range faults {
		j.Faults = append(j.Faults, &oracle.Fault{Name: string(f.Kind), Cause: causes[f.Kind], Lock: f.Lock,
			Start: f.Start, End: f.End})
	}
	return j
}

// late is how long after a call without an answer it may still be done.
const late = 15 * time.Second

// breaks are the faults that clients do by their calls.
func breaks(calls []*call) (list []*fault) {
	for _, c := range calls {
		if c.Call != "break" {
			continue
		}
		f := &fault{Kind: lockBreak, Target: c.Process, Lock: c.Lock, Start: c.Start, End: c.End}
		if c.End == 0 || c.Outcome != "ok" {
			f.End = max(c.Start, c.End).Add(late)
		}
		list = append(list, f)
	}
	return list
}

// short keeps the first words of an outcome, for counting.
func short(s string) string {
	const most = 48
	return s[:min(len(s), most)]
}
