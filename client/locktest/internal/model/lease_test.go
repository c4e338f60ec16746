package model

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// pair is the client's lease machine and the model's client, side by side. A tick is half a lease,
// and renewals are due with each tick.
type pair struct {
	machine lease.Lease
	client  Client
	now     time.Time
	sent    time.Time // of the renewal under way
}

const leaseLength = 30 * time.Second

var leaseTerms = lease.Terms{Length: leaseLength, RenewEvery: leaseLength / 2}

// due does what the machine asks for, in both. It returns false if only the machine's lease is over.
func (p *pair) due(cfg *Config) bool {
	for {
		switch p.machine.Step(p.now) {
		case lease.None:
			return true
		case lease.Renew:
			p.sent = p.now
			cfg.send(&p.client, Renew)
		case lease.Expire:
			if p.client.Believes() {
				return false
			}
		case lease.GiveBack:
			p.machine.GaveBack()
		}
	}
}

// walk tries all that can happen, to a depth. It returns how many ways there are, and on how many
// the two differ.
func (p pair) walk(cfg *Config, depth int) (ways, wrong int) {
	if !p.due(cfg) || p.machine.Working(p.now) != p.client.Believes() {
		return 1, 1
	}
	if depth == 0 || p.machine.Done() {
		return 1, 0
	}
	for what := range 5 {
		q := p
		asking := q.client.Call.Kind == Renew
		switch {
		case what == 0:
			q.now = q.now.Add(leaseLength / 2)
			cfg.tick(&State{}, &q.client)
		case what == 1 && asking:
			q.machine.Renewed(q.sent)
			q.client.Call.Yes = 1
			cfg.hear(&q.client, true)
		case what == 2 && asking:
			q.machine.Refused(q.now, q.now)
			cfg.hear(&q.client, true)
		case what == 3 && asking:
			q.machine.Failed(lease.Renew, q.now)
			cfg.abandon(&State{}, &q.client)
		case what == 4 && q.client.Phase == Held:
			q.machine.GiveUp()
			cfg.release(&State{}, &q.client)
		default:
			continue
		}
		n, bad := q.walk(cfg, depth-1)
		ways, wrong = ways+n, wrong+bad
	}
	return ways, wrong
}

// TestTheLeaseMachineBelievesAsTheModelDoes ties the model's clients to the client's lease machine:
// whatever becomes of its renewals, at each tick both believe that they hold the lock, or neither.
func TestTheLeaseMachineBelievesAsTheModelDoes(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	walk := func(cfg Config) (ways, wrong int) {
		machine := lease.New(&leaseTerms, now)
		return pair{machine: machine, client: Client{Phase: Held, Left: cfg.belief()}, now: now}.walk(&cfg, 12)
	}
	ways, wrong := walk(base("lease machine"))
	if ways < 300 || wrong > 0 {
		t.Errorf("%d of %d ways differ", wrong, ways)
	}
	t.Logf("%d ways", ways)
	for _, belief := range []int8{1, 3} { // that the two can differ
		if _, wrong := walk(base("lease machine", func(c *Config) { c.Belief = belief })); wrong == 0 {
			t.Errorf("a belief of %d ticks makes no difference", belief)
		}
	}
}
