// SPDX-License-Identifier: Apache-2.0

// Package fcall is the only place that speaks FCALL: calls as values, their replies, and the errors
// that can come back. A call returns when its context ends, whatever rueidis waits for.
package fcall

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/redis/rueidis"
)

// Config is what a Caller needs: all but AutoLoad and Ended is required.
type Config struct {
	Redis    rueidis.Client
	AutoLoad bool // load the library where it is missing

	// Closing ends each Do; with Ended, one that goes straight ends with its connection, which is closed then.
	// Its cause is the error. Send ends with its own context only, because a client that closes still releases
	// by it.
	Closing context.Context

	Heard func() // the server has answered
	// A call may have changed the key. Called after each call but a read or a tracked refusal, and
	// again when a call is done that was given up. tracked: the server tells of the next change of the key.
	Changed   func(key string, tracked bool)
	Untracked func(error) // CLIENT CACHING YES failed with this error of rueidis; the call did not
	Demoted   func()      // the one server is a replica

	// Ended counts the connections of Redis that have ended, if it has one for each node, with room for
	// 1,024 calls, which nobody else uses. From Shared on, and where it is nil, that is not so.
	Ended *atomic.Uint32
}

// Shared is a count of connections that are used by others too.
const Shared = 1 << 31

// Caller calls the library on one deployment: a Backend. It is safe for concurrent use.
type Caller struct {
	Config
	library   library
	abandoned atomic.Int64    // calls given up whose answers may come yet
	flying    atomic.Int64    // calls and pipelines without an answer, also those that were given up
	healthy   []atomic.Uint32 // by slot: see health

	given [cluster.Slots >> groupBits]atomic.Int64 // abandoned, by groups of slots
}

var _ Backend = (*Caller)(nil)

// New returns a Caller. It sends nothing.
func New(cfg Config) *Caller {
	c := &Caller{Config: cfg, healthy: make([]atomic.Uint32, 1)}
	if cfg.Redis != nil && cfg.Redis.Mode() == rueidis.ClientModeCluster {
		c.healthy = make([]atomic.Uint32, cluster.Slots)
	}
	return c
}

// Voting returns false: one deployment decides.
func (c *Caller) Voting() bool { return false }

// Slot returns the slot of a key in a Cluster, else 0.
func (c *Caller) Slot(key string) uint16 {
	if len(c.healthy) == 1 {
		return 0
	}
	return cluster.Slot(key)
}

// Do makes one call.
func (c *Caller) Do(ctx context.Context, call Call) (Reply, error) {
	health, now := c.health(call.Key)
	// Counted before it is compared, or many at once would all find room.
	endless := ctx.Done() == nil && (c.Ended != nil || c.Closing.Done() == nil)
	if n := c.flying.Add(1); c.admit(ctx, call.Key) == nil && (endless || n <= maxStraight && straight(health, now)) {
		if _, dated := ctx.Deadline(); dated {
			ctx = undated{ctx}
		}
		reply, err := c.do(ctx, &call, health, now)
		c.written(&call, reply, err)
		return reply, c.landed(call.Key, err)
	}
	c.flying.Add(-1)
	o := c.Pipe(ctx, c.Closing, []Call{call}, func(ctx context.Context, calls []Call, outcomes []Outcome) {
		outcomes[0].Reply, outcomes[0].Err = c.do(ctx, &calls[0], health, now)
	})[0]
	return o.Reply, o.Err
}

// do is Do without a guard, and without a report of what was written. It repeats a call that did nothing
// because the library was missing, once.
func (c *Caller) do(ctx context.Context, call *Call, health *atomic.Uint32, before uint32) (Reply, error) {
	reply, err := c.once(ctx, call)
	if health != nil && health.Load() != before && (err == nil || refused(err) != nil) {
		health.Store(before)
	}
	if err != nil {
		if c.Heal(ctx, err) {
			reply, err = c.once(ctx, call)
		}
		err = c.Explain(err)
	}
	return reply, err
}

// written reports a key that a call may have changed. A tracked refusal changed nothing, and the
// client is about to remember it.
func (c *Caller) written(call *Call, reply Reply, err error) {
	if call.Verb == Inspect || call.Verb == Holders || call.Tracked && err == nil && !reply.Yes {
		return
	}
	c.Changed(call.Key, call.Tracked)
}

func (c *Caller) once(ctx context.Context, call *Call) (Reply, error) {
	if call.Tracked {
		o := c.pipeline(ctx, []Call{*call})[0]
		return o.Reply, o.Err
	}
	return c.Decode(ctx, call, c.Redis.Do(ctx, c.Command(call)))
}

// Send makes calls, of which there is one at least, as one pipeline.
func (c *Caller) Send(ctx context.Context, calls []Call) []Outcome {
	return c.Pipe(ctx, context.Background(), calls, c.send)
}

// send is Send without a guard. It repeats the calls that missed the library, once.
func (c *Caller) send(ctx context.Context, calls []Call, outcomes []Outcome) {
	copy(outcomes, c.pipeline(ctx, calls))
	var missed []int
	var again []Call
	for i, o := range outcomes {
		if c.Heal(ctx, o.Err) {
			missed, again = append(missed, i), append(again, calls[i])
		}
	}
	for i, o := range c.pipeline(ctx, again) {
		outcomes[missed[i]] = o
	}
	for i, o := range outcomes {
		outcomes[i].Err = c.Explain(o.Err)
	}
}

func (c *Caller) pipeline(ctx context.Context, calls []Call) []Outcome {
	commands := make(rueidis.Commands, 0, 2*len(calls))
	for i := range calls {
		if calls[i].Tracked {
			caching := c.Redis.B().Arbitrary("CLIENT", "CACHING", "YES").Build()
			commands = append(commands, caching.SetSlot(calls[i].Key)) // in a Cluster it goes where the next one does
		}
		commands = append(commands, c.Command(&calls[i]))
	}
	results := c.Redis.DoMulti(ctx, commands...)
	outcomes := make([]Outcome, len(calls))
	at := 0
	for i := range calls {
		if calls[i].Tracked {
			if err := results[at].Error(); err != nil {
				c.Untracked(err)
				c.Changed(calls[i].Key, true) // its answer is not to be kept
			}
			at++
		}
		outcomes[i].Reply, outcomes[i].Err = c.Decode(ctx, &calls[i], results[at])
		at++
	}
	return outcomes
}
