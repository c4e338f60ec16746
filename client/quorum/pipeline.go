package quorum

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/functions"
)

// pipeline makes calls about locks that somebody has, as one pipeline to each server. Their outcomes
// are those of majorities. They can be waited for, and end with closing then. ended is why it did not
// wait for more answers: the error of ctx or the cause of closing.
func (s *servers) pipeline(ctx context.Context, calls []fcall.Call, waited bool) (outcomes []fcall.Outcome, ended error) {
	closing := s.done
	if waited {
		closing = s.closing
	}
	counts := make([]count, len(calls))
	for i, call := range calls {
		counts[i] = count{poll: s.poll(), all: &s.ballots, call: call, waited: waited, ballot: s.ballots.find(call.Owner)}
	}
	limit := lasting
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
	}
	answers := ask(ctx, s, limit, func(ctx context.Context, i int, c *fcall.Caller) ([]fcall.Outcome, error) {
		return deliver(ctx, i, c, counts)
	})
	// what has not answered when the context ends is missing in the counts
	ended = receive(ctx, closing, answers, s.need, moment, func(a answer[[]fcall.Outcome]) bool {
		decided := true
		for i := range counts {
			o := fcall.Outcome{Err: a.err}
			if len(a.value) > 0 { // it was sent
				o = a.value[i]
			}
			counts[i].add(o)
			decided = counts[i].decided() && decided
		}
		return decided
	})
	for i := range counts {
		outcomes = append(outcomes, counts[i].outcome())
	}
	return outcomes, ended
}

// count is how the servers answered one call.
type count struct {
	poll
	all    *ballots
	call   fcall.Call
	waited bool
	ballot *ballot // of its owner; nil: nothing is left of it
}

// gives reports whether the call gives something back.
func (c *count) gives() bool { return c.call.Verb == fcall.Release || c.call.Verb == fcall.Leave }

// concerns reports whether a server is to be called. What is given back is told only to those that may
// have something, until they have heard it: the others would be told again each time that one of them
// does not answer. But who waits for a release hears whether a majority still had the lock.
func (c *count) concerns(server int) bool {
	return !c.gives() || c.waited || c.ballot != nil && c.ballot.matters(server)
}

// to is the call as one server gets it. Owners are never used twice, so no token needs to be named, and
// a server can have another one.
func (c *count) to(server int) (call fcall.Call, covers int) {
	call = c.call
	call.Tracked, call.Replicas = false, 0
	switch {
	case call.Verb == fcall.Renew:
		call = raising(call, call.Fence)
	case c.gives():
		if call.Fence = 0; c.ballot != nil {
			covers = c.ballot.leaves(server)
		}
	}
	return call, covers
}

// deliver is the pipeline to one server, and a second one for the votes that it can give again.
func deliver(ctx context.Context, server int, c *fcall.Caller, counts []count) ([]fcall.Outcome, error) {
	outcomes := make([]fcall.Outcome, len(counts))
	var wanted, covers []int
	var calls []fcall.Call
	for i := range counts {
		if counts[i].concerns(server) {
			call, covered := counts[i].to(server)
			wanted, covers, calls = append(wanted, i), append(covers, covered), append(calls, call)
		} else {
			outcomes[i].Yes = true // nothing to give back
		}
	}
	if len(calls) == 0 {
		return outcomes, nil
	}
	sent := time.Now()
	var lapsed []int
	answered := 0
	var err error
	for n, o := range c.Send(ctx, calls) {
		i := wanted[n]
		outcomes[i] = o
		if err = o.Err; err == nil {
			answered++
		}
		b := counts[i].ballot
		switch {
		case b == nil || o.Err != nil:
		case counts[i].gives():
			b.left(server, covers[n])
		case counts[i].call.Verb == fcall.Renew:
			b.renewed(server, sent, calls[n].TTL, o.Yes)
			if !o.Yes && o.Holder == "" && o.Why != functions.WhyBroken && b.lapsed(server, sent) {
				lapsed = append(lapsed, i)
			}
		}
	}
	if len(lapsed) > 0 {
		restore(ctx, server, c, lapsed, counts, outcomes)
	}
	if answered > 0 {
		err = nil
	}
	return outcomes, err
}

// restore asks for the votes that a server has lost. They count when their token is raised too.
func restore(ctx context.Context, server int, c *fcall.Caller, lapsed []int, counts []count, outcomes []fcall.Outcome) {
	calls, sent := make([]fcall.Call, 0, 2*len(lapsed)), time.Now()
	for _, i := range lapsed {
		of := &counts[i]
		calls = append(calls, of.ballot.again(of.call, sent), raising(of.call, of.call.Fence))
	}
	restored := c.Send(ctx, calls)
	for n, i := range lapsed {
		taken, raised := restored[2*n], restored[2*n+1]
		counts[i].ballot.answered(server, sent, taken)
		switch {
		case taken.Err == nil && taken.Yes:
			outcomes[i] = raised
		case taken.Err == nil && taken.Holder == "":
			// it has forgotten the vote, and nobody else has it: no reason to give the lock up
			outcomes[i].Err = fmt.Errorf("%w: it grants nothing for %v", fcall.ErrUnreachable, taken.Remaining)
		}
	}
}

// decided reports whether further answers change nothing. Of a question all count that come in time,
// and what is given back goes to all.
func (c *count) decided() bool {
	if c.call.Verb == fcall.Renew {
		return len(c.yes) >= c.need || len(c.no) > c.spare()
	}
	return c.answered()+len(c.failed) == c.servers
}

// outcome is what a majority says.
func (c *count) outcome() fcall.Outcome {
	switch {
	case c.gives():
		return c.givenBack()
	case c.call.Verb == fcall.Renew && len(c.yes) >= c.need:
		return fcall.Outcome{Reply: granted(c.call.Fence)}
	case c.call.Verb == fcall.Renew && len(c.no) > c.spare():
		// Another can have a majority. What is left is the caller's to give back, when nobody works
		// under the lock any more: until then it may be what keeps that other one out.
		return fcall.Outcome{Reply: c.refusal()}
	case c.call.Verb == fcall.Renew || c.answered() < c.need:
		return fcall.Outcome{Err: c.failure()}
	}
	r := c.owned()
	if token := c.all.known(r.Holder); r.Yes && token != 0 { // servers that voted late have higher ones
		r.Fence = token
	}
	return fcall.Outcome{Reply: r}
}

// givenBack is the outcome of a giving back: it is to be repeated until nothing is left. Who waits for it
// waits for a majority; Spent says that something may be left.
func (c *count) givenBack() (o fcall.Outcome) {
	left := !c.all.settle(c.call.Owner, c.ballot)
	switch {
	case left && !c.waited:
		o.Err = fmt.Errorf("%w: %d of %d have answered", errOwing, c.answered(), c.servers)
	case len(c.no) > c.spare():
		o.Reply = c.refusal()
	case !c.waited || len(c.yes) >= c.need:
		o.Yes = true
	default:
		o.Err = c.failure()
	}
	o.Spent = left
	return o
}

// Version is the version of the library at a majority; if they differ, all of them.
func (s *servers) Version(ctx context.Context) (string, error) {
	p, versions := s.poll(), map[string]bool{}
	answers := ask(ctx, s, lasting, func(ctx context.Context, _ int, c *fcall.Caller) (string, error) { return c.Version(ctx) })
	err := receive(ctx, s.closing, answers, s.need, moment, func(a answer[string]) bool {
		p.add(fcall.Outcome{Err: a.err})
		if a.err == nil {
			versions[a.value] = true
		}
		return false
	})
	if err == nil && p.answered() < s.need {
		err = p.failure()
	}
	return strings.Join(slices.Sorted(maps.Keys(versions)), ", "), err
}
