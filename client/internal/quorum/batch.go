package quorum

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// Batch is a pipeline of calls to each server, each call about one lock. Its outcomes are those of
// majorities.
type Batch struct {
	servers *Servers
	calls   []call
}

// verb is what a call does.
type verb uint8

const (
	renew verb = iota
	look
	leave
)

type call struct {
	verb    verb
	key     string
	owner   string
	renewal fcall.Renewal
	ballot  *ballot
}

// NewBatch returns an empty batch for about n calls.
func (s *Servers) NewBatch(n int, _ fcall.Copies) *Batch {
	return &Batch{servers: s, calls: make([]call, 0, n)}
}

// Renew adds a renewal.
func (b *Batch) Renew(_ bool, key string, r fcall.Renewal) {
	b.calls = append(b.calls, call{verb: renew, key: key, owner: r.Owner, renewal: r, ballot: b.servers.ballots.find(r.Owner)})
}

// Look adds an Inspect.
func (b *Batch) Look(_ bool, key string) { b.calls = append(b.calls, call{verb: look, key: key}) }

// Leave adds a giving back, of all that the owner has.
func (b *Batch) Leave(key, owner, _ string, _ int64) {
	b.calls = append(b.calls, call{verb: leave, key: key, owner: owner, ballot: b.servers.ballots.end(owner)})
}

// Send sends the batch, and returns an Outcome for each call, in their order: that of a majority;
// what is given back must have reached all servers that may have it.
func (b *Batch) Send(ctx context.Context) []fcall.Outcome {
	s := b.servers
	counts := make([]count, len(b.calls))
	for i := range counts {
		counts[i] = count{call: &b.calls[i], servers: len(s.members), need: s.need}
	}
	limit := time.Minute
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
	}
	answers, n := ask(ctx, s, limit, b.send)
	// what is given back while the client closes shall arrive
	_ = receive(ctx, s.done, s, answers, n, func(a answer[[]fcall.Outcome]) bool {
		decided := true
		for i := range counts {
			counts[i].add(a.from, a.value, i, a.err)
			decided = counts[i].decided() && decided
		}
		return decided
	})
	outcomes := make([]fcall.Outcome, len(counts))
	for i := range counts {
		outcomes[i] = s.outcome(&counts[i])
	}
	return outcomes
}

// send is the pipeline to one server, and a second one for the votes that it can give again.
func (b *Batch) send(ctx context.Context, from int, c *fcall.Caller) ([]fcall.Outcome, error) {
	sent := time.Now()
	outcomes, wanted := b.deliver(ctx, from, c)
	var lapsed []int
	for i, call := range b.calls {
		if call.verb != renew || call.ballot == nil || outcomes[i].Err != nil {
			continue
		}
		r := outcomes[i].Reply
		if call.ballot.renewed(from, sent, call.renewal.TTL, r.Yes); !r.Yes && r.Holder == "" && call.ballot.lapsed(from, sent) {
			lapsed = append(lapsed, i)
		}
	}
	if len(lapsed) > 0 {
		b.restore(ctx, from, c, lapsed, outcomes)
	}
	return outcomes, silence(outcomes, wanted)
}

// silence is the error of a server that answered none of the calls that it was wanted for, or nil.
func silence(outcomes []fcall.Outcome, wanted []int) (err error) {
	for _, i := range wanted {
		if err = outcomes[i].Err; err == nil {
			return nil
		}
	}
	return err
}

// concerns reports whether a server is to be called. What is given back is told only to those that may
// have something, until they have heard it: the others would be told again each time that one of them
// does not answer.
func (c call) concerns(server int) bool {
	return c.verb != leave || c.ballot == nil || c.ballot.matters(server)
}

// deliver makes the calls that concern a server: those wanted.
func (b *Batch) deliver(ctx context.Context, from int, c *fcall.Caller) (outcomes []fcall.Outcome, wanted []int) {
	outcomes = make([]fcall.Outcome, len(b.calls))
	for i, call := range b.calls {
		if call.concerns(from) {
			wanted = append(wanted, i)
		}
	}
	if len(wanted) == 0 {
		return outcomes, nil
	}
	covers := make([]int, len(b.calls))
	pipeline := func() error {
		p := c.NewBatch(len(wanted), fcall.Copies{})
		for _, i := range wanted {
			call := b.calls[i]
			if call.verb == leave && call.ballot != nil {
				covers[i] = call.ballot.tells(from)
			}
			switch call.verb {
			case renew:
				p.Raise(call.key, b.servers.addressed(call.key, from, call.renewal))
			case look:
				p.Look(false, call.key)
			case leave:
				p.Leave(call.key, call.owner, "", 0)
			}
		}
		for n, o := range p.Send(ctx) {
			outcomes[wanted[n]] = o
		}
		return outcomes[wanted[0]].Err
	}
	if c.Heal(ctx, pipeline()) {
		_ = pipeline()
	}
	for _, i := range wanted {
		if call := b.calls[i]; call.verb == leave && call.ballot != nil && outcomes[i].Err == nil {
			call.ballot.gone(from, covers[i])
		}
	}
	return outcomes, wanted
}

// addressed leaves the channel, on which a break is told, only at the server that tells: the one
// that has the line.
func (s *Servers) addressed(key string, to int, r fcall.Renewal) fcall.Renewal {
	if s.Line(key) != to {
		r.Channel = ""
	}
	return r
}

// restore asks for the votes that a server has lost. They count when their token is raised too.
func (b *Batch) restore(ctx context.Context, from int, c *fcall.Caller, lapsed []int, outcomes []fcall.Outcome) {
	p := c.NewBatch(2*len(lapsed), fcall.Copies{})
	before := make([]bool, len(lapsed))
	for n, i := range lapsed {
		call := b.calls[i]
		p.Acquire(call.key, fcall.Request{Owner: call.owner, TTL: call.renewal.TTL, Guard: call.ballot.guard, Block: 1})
		p.Raise(call.key, b.servers.addressed(call.key, from, call.renewal))
		before[n] = call.ballot.asked(from)
	}
	sent := time.Now()
	restored := p.Send(ctx)
	for n, i := range lapsed {
		taken, raised, call := restored[2*n], restored[2*n+1], b.calls[i]
		if call.ballot.answered(from, before[n], sent, taken.Reply, taken.Err) {
			b.servers.late(call.key, call.owner)
		}
		switch {
		case taken.Err == nil && taken.Reply.Yes:
			outcomes[i] = raised
		case taken.Err == nil && taken.Reply.Holder == "":
			// it has forgotten the vote, and nobody else has it: no reason to give the lock up
			outcomes[i].Err = fmt.Errorf("%w: it grants nothing for %v", fcall.ErrUnreachable, taken.Reply.Remaining)
		}
	}
}

// count is how the servers answered one call.
type count struct {
	call          *call
	servers, need int
	yes, no       int
	standings     []fcall.Standing
	failed        []error
	owing         int // servers that may have something to give back, and have not said so yet
	heard         int
}

func (c *count) add(from int, outcomes []fcall.Outcome, i int, err error) {
	c.heard++
	var o fcall.Outcome
	if len(outcomes) > 0 { // it was sent
		o, err = outcomes[i], outcomes[i].Err
	}
	switch {
	case err != nil:
		c.failed = append(c.failed, err)
		if c.call.verb == leave && (c.call.ballot == nil || c.call.ballot.matters(from)) {
			c.owing++
		}
	case c.call.verb == look:
		c.standings = append(c.standings, o.Standing)
	case c.call.verb == leave || o.Reply.Yes:
		c.yes++
	default:
		c.no++
	}
}

// decided reports whether further answers change nothing.
func (c *count) decided() bool {
	switch c.call.verb {
	case leave:
		return c.heard == c.servers
	case look:
		s, agreed := majority(c.standings, c.need)
		return agreed && s.Held
	}
	return c.yes >= c.need || c.no > c.servers-c.need
}

// outcome is what a majority says.
func (s *Servers) outcome(c *count) (o fcall.Outcome) {
	answered := c.yes + c.no + len(c.standings)
	standing, agreed := majority(c.standings, s.need)
	switch {
	case c.call.verb == leave && c.heard == c.servers && c.owing == 0:
		s.ballots.forget(c.call.owner)
		o.Reply.Yes = true
	case c.call.verb == leave:
		o.Err = fmt.Errorf("%w: %d of %d have answered", ErrOwing, answered, len(s.members))
	case c.call.verb == look && agreed:
		o.Standing = s.ballots.known(standing)
	case c.call.verb == renew && c.yes >= s.need:
		o.Reply = fcall.Reply{Yes: true, Fence: c.call.renewal.Fence, Holds: 1, Block: 1}
	case c.call.verb == renew && c.no > len(s.members)-s.need:
		// Another can have a majority. What is left is the caller's to give back, when nobody works
		// under the lock any more: until then it may be what keeps that other one out.
	default:
		o.Err = s.failure(answered, c.failed)
	}
	return o
}
