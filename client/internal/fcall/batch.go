package fcall

import (
	"context"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// Batch is a pipeline of calls, each about one lock. With Copies, the locks are best of one node.
type Batch struct {
	caller *Caller
	copies Copies
	calls  []batched
}

// batched is one call of a batch.
type batched struct {
	function, key string
	args          []string
	tracked       bool // the server tells when the key changes
}

// Outcome is the result of one call of a Batch. Look fills Standing, the others Reply.
type Outcome struct {
	Reply    Reply
	Standing Standing
	Err      error
}

// NewBatch returns an empty batch for about n calls. What fewer replicas have than copies asks for
// is ErrNotReplicated.
func (c *Caller) NewBatch(n int, copies Copies) *Batch {
	return &Batch{caller: c, copies: copies, calls: make([]batched, 0, n)}
}

func (b *Batch) append(call batched) { b.calls = append(b.calls, call) }

// Renew adds a renewal.
func (b *Batch) Renew(tracked bool, key string, r Renewal) {
	b.append(batched{functions.Renew, key, r.args(), tracked})
}

// Raise adds a renewal of a lock that several servers have.
func (b *Batch) Raise(key string, r Renewal) {
	b.append(batched{function: functions.Raise, key: key, args: r.raise()})
}

// Acquire adds a request for a lock.
func (b *Batch) Acquire(key string, r Request) {
	function, args := r.acquire()
	b.append(batched{function: function, key: key, args: args})
}

// Look adds an Inspect.
func (b *Batch) Look(tracked bool, key string) {
	b.append(batched{function: functions.Inspect, key: key, tracked: tracked})
}

// Leave adds a giving back.
func (b *Batch) Leave(key, owner, hold string, fence int64) {
	b.append(batched{functions.Leave, key, leaveArgs(owner, hold, fence), false})
}

// Send sends the batch, and returns an Outcome for each call, in their order. It returns when the
// context ends.
func (b *Batch) Send(ctx context.Context) []Outcome {
	if b.copies.Replicas == 0 {
		return b.send(ctx, place{node: b.caller.Redis})
	}
	outcomes := b.send(ctx, b.caller.home(ctx, b.calls[0].key))
	for i := range outcomes {
		if word, _ := redirect(outcomes[i].Err); word != "" {
			outcomes[i] = b.caller.copied(ctx, b.copies, b.calls[i])
		}
	}
	return outcomes
}

func (b *Batch) send(ctx context.Context, to place) []Outcome {
	c := b.caller
	commands, at := b.commands(to.asking)
	results, err := guard(ctx, context.Background(), func(ctx context.Context) ([]rueidis.RedisResult, error) {
		if b.copies.Replicas == 0 {
			return to.node.DoMulti(ctx, commands...), nil
		}
		limited, cancel := context.WithTimeout(ctx, b.copies.Wait+grace)
		defer cancel()
		return to.node.DoMulti(limited, commands...), nil
	})
	outcomes := make([]Outcome, len(b.calls))
	for i := range outcomes {
		outcomes[i].Err = err
	}
	if err != nil {
		c.homes.forget(to.addr) // it may not answer at all
		return outcomes
	}
	for i, call := range b.calls {
		if call.tracked {
			if err := results[at[i]-1].Error(); err != nil {
				c.Cached(err)
			}
		}
		outcomes[i] = b.decode(ctx, call, results[at[i]])
	}
	if b.copies.Replicas > 0 {
		b.copies.counted(outcomes, results[len(results)-1])
		if c.Slotted && failed(outcomes[0].Err) {
			c.homes.forget(to.addr)
			c.nudge(ctx, b.calls[0].key)
		}
	}
	return outcomes
}

// commands returns those of the batch, and where that of each call is.
func (b *Batch) commands(asking bool) (commands rueidis.Commands, at []int) {
	c := b.caller
	commands, at = make(rueidis.Commands, 0, 2*len(b.calls)+1), make([]int, len(b.calls))
	for i, call := range b.calls {
		if call.tracked {
			commands = append(commands, c.caching(call.key))
		}
		if asking {
			commands = append(commands, c.asking(call.key))
		}
		at[i] = len(commands)
		commands = append(commands, c.command(call.function, call.key, call.args...))
	}
	if b.copies.Replicas > 0 {
		commands = append(commands, c.wait(b.copies, b.calls[0].key))
	}
	return commands, at
}

func (b *Batch) decode(ctx context.Context, call batched, result rueidis.RedisResult) (o Outcome) {
	values, err := result.ToArray()
	if err = b.caller.classify(ctx, err); err == nil {
		b.caller.Heard()
	}
	switch {
	case call.function == functions.Inspect:
		o.Standing, o.Err = decodeStanding(values, err)
	case call.function == functions.Leave:
		o.Reply.Yes, o.Err = decodeLeft(values, err)
	default:
		o.Reply, o.Err = decodeReply(values, err)
	}
	return o
}
