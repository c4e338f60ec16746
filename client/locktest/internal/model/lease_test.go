package model

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// pair is one lease machine that lives through everything, and the model's client, which makes one anew
// for each event. A tick is half a lease.
type pair struct {
	machine lease.Lease
	client  Client
	now     time.Time
	sent    time.Time // of the renewal under way
}

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
		case lease.Look:
			p.machine.Looked(true)
		}
	}
}

// walk tries all that can happen, to a depth. It returns how many ways there are, and on how many
// the two differ.
func (p pair) walk(cfg *Config, depth int) (ways, wrong int) {
	if !p.due(cfg) || p.machine.Working(p.now) != p.client.Believes() {
		return 1, 1
	}
	if depth == 0 || p.machine.State() > lease.Held {
		return 1, 0
	}
	for what := range 6 {
		q := p
		asking := q.client.Call.Kind == Renew
		switch {
		case what == 0:
			q.now = q.now.Add(tickTime)
			cfg.tick(&State{}, &q.client)
		case what == 1 && asking:
			q.machine.Renewed(q.sent)
			q.client.Call.Yes = 1
			cfg.hear(&q.client, true)
		case what == 2 && asking:
			q.machine.Refuse()
			cfg.hear(&q.client, true)
		case what == 3 && asking:
			q.machine.Failed(q.now)
			cfg.abandon(&State{}, &q.client)
		case what == 4 && q.client.Phase == Held:
			q.machine.Leave()
			q.machine.End()
			cfg.release(&State{}, &q.client)
		case what == 5 && !asking: // by hand
			q.machine.Extend(q.now, 0)
			q.sent = q.now
			cfg.send(&q.client, Renew)
		default:
			continue
		}
		n, bad := q.walk(cfg, depth-1)
		ways, wrong = ways+n, wrong+bad
	}
	return ways, wrong
}

// TestTheLeaseMachineBelievesAsTheModelDoes shows that a state keeps all of a lease machine that
// matters: whatever becomes of the renewals, at each tick both believe that they hold the lock, or
// neither, whether it was granted for a whole lease or handed over.
func TestTheLeaseMachineBelievesAsTheModelDoes(t *testing.T) {
	terms := &lease.Terms{Length: 2 * tickTime, RenewEvery: tickTime}
	walk := func(cfg Config) (ways, wrong int) {
		whole := pair{lease.New(terms, now), Client{Phase: Held, Left: cfg.belief()}, now, now}
		handed := pair{lease.Provisional(terms, now, lease.Deadline(now, tickTime)), Client{Phase: Confirming, Left: 1}, now, now}
		ways, wrong = whole.walk(&cfg, 10)
		more, bad := handed.walk(&cfg, 10)
		return ways + more, wrong + bad
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
