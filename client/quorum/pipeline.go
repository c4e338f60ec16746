// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/functions"
)

// pipeline makes calls about locks that somebody has, as one pipeline to each server. Their outcomes
// are those of majorities. They end with closing. If they are waited for, the error of what ended them is
// theirs.
func (s *servers) pipeline(ctx, closing context.Context, calls []fcall.Call, waited bool) (outcomes []fcall.Outcome) {
	counts := make([]count, len(calls))
	for i, call := range calls {
		counts[i] = count{s.poll(), call, waited, s.ballots.find(call.Owner, gives(call) && !waited)}
	}
	silent := 0 // for a while: nobody waits for them if a majority answers
	for _, m := range s.members {
		if m.silent(headStart) {
			silent++
		}
	}
	answers := make(chan answer[[]fcall.Outcome], len(s.members))
	for i := range s.members {
		go func() {
			answers <- ask(ctx, s, i, func(ctx context.Context, c *fcall.Caller) ([]fcall.Outcome, error) {
				return deliver(ctx, i, c, counts)
			})
		}()
	}
	open := func() (most time.Duration) {
		for _, c := range counts {
			if c.call.Verb == fcall.Renew {
				most = max(most, c.open(silent, length(c.call.TTL)/8))
			}
		}
		return most
	}
	// what has not answered when the context ends is missing in the counts
	ended := receive(ctx, closing, answers, s.need, moment, open, func(a answer[[]fcall.Outcome]) bool {
		decided := true
		for i := range counts {
			o := fcall.Outcome{Err: a.err}
			if len(a.value) > 0 { // it was sent
				o = a.value[i]
			}
			counts[i].add(o)
			decided = counts[i].decided(silent) && decided
		}
		return decided
	})
	for i := range counts {
		o := counts[i].outcome()
		if waited && o.Err != nil && ended != nil {
			o.Err = ended
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// count is how the servers answered one call.
type count struct {
	poll
	call   fcall.Call
	waited bool
	ballot *ballot // of its owner
}

// gives reports whether a call gives something back.
func gives(call fcall.Call) bool { return call.Verb == fcall.Release || call.Verb == fcall.Leave }

// to is the call as one server gets it, if it does. What is given back is told only to those that may
// have something, until they have heard it: the others would be told again each time that one of them
// does not answer. That is right for those alone where a request may run late, see find. But who waits for a
// release hears whether a majority still had the lock.
//
// Owners are never used twice, so no token needs to be named, and a server can have another one.
func (c *count) to(server int) (call fcall.Call, covers int, concerned bool) {
	call, concerned = c.call, true
	switch {
	case call.Verb == fcall.Renew:
		call = raising(call, call.Fence)
	case gives(c.call):
		call.Fence = 0
		covers, concerned = c.ballot.leaves(server)
	}
	return call, covers, concerned || c.waited
}

// deliver is the pipeline to one server. A vote that it has lost, or never gave, is asked for before it is
// renewed. err is one of them all: a server that refuses one call has answered the others.
func deliver(ctx context.Context, server int, c *fcall.Caller, counts []count) (outcomes []fcall.Outcome, err error) {
	outcomes = make([]fcall.Outcome, len(counts))
	var of, covers []int
	var calls []fcall.Call
	sent := time.Now()
	for i := range counts {
		call, covered, concerned := counts[i].to(server)
		if !concerned {
			outcomes[i].Yes = true // nothing to give back
			continue
		}
		if vote, lost := counts[i].ballot.again(server, call, sent); lost {
			of, covers, calls = append(of, i), append(covers, 0), append(calls, vote)
		}
		of, covers, calls = append(of, i), append(covers, covered), append(calls, call)
	}
	for n, o := range send(ctx, c, calls) {
		i, b, again := of[n], counts[of[n]].ballot, n > 0 && of[n-1] == of[n]
		if n == 0 || o.Err == nil {
			err = o.Err
		}
		switch {
		case calls[n].Verb == fcall.Acquire || calls[n].Verb == fcall.Renew:
			b.heard(server, sent, calls[n], o)
		case gives(counts[i].call) && o.Err == nil:
			b.left(server, covers[n])
		}
		if again && o.Err == nil && !o.Yes && o.Holder == "" && o.Why != functions.WhyBroken {
			// it has forgotten the vote, and nobody else has it: no reason to give the lock up
			o.Err = fmt.Errorf("%w: it grants nothing for %v", fcall.ErrUnreachable, outcomes[i].Remaining)
		}
		outcomes[i] = o
	}
	return outcomes, err
}

// send is a pipeline; one call needs none, nor does none.
func send(ctx context.Context, c *fcall.Caller, calls []fcall.Call) []fcall.Outcome {
	switch len(calls) {
	case 0:
		return nil
	case 1:
		r, err := c.Do(ctx, calls[0])
		return []fcall.Outcome{{Reply: r, Err: err}}
	}
	return c.Send(ctx, calls)
}

// decided reports whether further answers change nothing. Of a question all count that come in time,
// and what is given back goes to all, but for those that are silent.
func (c *count) decided(silent int) bool {
	return len(c.failed) > c.spare() ||
		(len(c.yes) >= c.need || len(c.no) > c.spare()) && (c.call.Verb == fcall.Renew || c.left() <= silent)
}

// outcome is what a majority says.
func (c *count) outcome() fcall.Outcome {
	switch {
	case gives(c.call):
		return c.givenBack()
	case c.call.Verb == fcall.Renew && (len(c.no) > c.spare() || c.refusal().Why == functions.WhyBroken):
		// Another can have a majority; or servers that were away have voted after a break. What is left is the
		// caller's to give back, when nobody works under the lock any more: until then it may be what keeps that
		// other one out.
		return fcall.Outcome{Reply: c.refusal()}
	case c.call.Verb == fcall.Renew && len(c.yes) >= c.need:
		return fcall.Outcome{Reply: granted(c.call.Fence)}
	case c.call.Verb == fcall.Renew || c.answered() < c.need:
		return fcall.Outcome{Err: c.failure()}
	}
	return fcall.Outcome{Reply: c.owned()}
}

// givenBack is the outcome of a giving back: what a majority says. Spent says that something may be left, and
// that it is to be repeated.
func (c *count) givenBack() (o fcall.Outcome) {
	left := !c.ballot.settle(math.MaxInt)
	switch {
	case len(c.no) > c.spare():
		o.Reply = c.refusal()
	case len(c.yes) >= c.need || !c.waited && !left:
		o.Yes = true
	default:
		o.Err = c.failure()
	}
	o.Spent = left
	return o
}
