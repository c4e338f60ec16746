package fcall

import (
	"context"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// Batch is a pipeline of calls, each about one lock.
type Batch struct {
	caller   *Caller
	commands rueidis.Commands
	calls    []batched
}

// batched is one call of a batch: where its command is, and whether its key is to be tracked.
type batched struct {
	at      int
	tracked bool
	look    bool
}

// Outcome is the result of one call of a Batch. Look fills Standing, the others Reply.
type Outcome struct {
	Reply    Reply
	Standing Standing
	Err      error
}

// NewBatch returns an empty batch for about n calls.
func (c *Caller) NewBatch(n int) *Batch {
	return &Batch{caller: c, commands: make(rueidis.Commands, 0, 2*n), calls: make([]batched, 0, n)}
}

func (b *Batch) add(tracked, look bool, function, key string, args ...string) {
	if tracked {
		b.commands = append(b.commands, b.caller.caching(key))
	}
	b.calls = append(b.calls, batched{len(b.commands), tracked, look})
	b.commands = append(b.commands, b.caller.command(function, key, args...))
}

// Renew adds a renewal.
func (b *Batch) Renew(tracked bool, key, owner, ttl, channel string, fence int64) {
	b.add(tracked, false, functions.Renew, key, renewArgs(owner, ttl, channel, fence)...)
}

// Look adds an Inspect.
func (b *Batch) Look(tracked bool, key string) { b.add(tracked, true, functions.Inspect, key) }

// Leave adds a giving back.
func (b *Batch) Leave(key, owner, hold string, fence int64) {
	b.add(false, false, functions.Leave, key, leaveArgs(owner, hold, fence)...)
}

// Send sends the batch, and returns an Outcome for each call, in their order. It returns when the
// context ends.
func (b *Batch) Send(ctx context.Context) []Outcome {
	c := b.caller
	results, err := guard(ctx, context.Background(), func() ([]rueidis.RedisResult, error) { return c.Redis.DoMulti(ctx, b.commands...), nil })
	outcomes := make([]Outcome, len(b.calls))
	for i := range outcomes {
		outcomes[i].Err = err
	}
	if err != nil {
		return outcomes
	}
	for i, call := range b.calls {
		if call.tracked {
			if err := results[call.at-1].Error(); err != nil {
				c.Cached(err)
			}
		}
		outcomes[i] = b.decode(ctx, call, results[call.at])
	}
	return outcomes
}

func (b *Batch) decode(ctx context.Context, call batched, result rueidis.RedisResult) (o Outcome) {
	values, err := result.ToArray()
	if err = Classify(ctx, err); err == nil {
		b.caller.Heard()
	}
	switch {
	case call.look:
		o.Standing, o.Err = decodeStanding(values, err)
	case err == nil && len(values) == 1: // leave
	default:
		o.Reply, o.Err = decodeReply(values, err)
	}
	return o
}
