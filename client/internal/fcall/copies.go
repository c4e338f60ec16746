package fcall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/redis/rueidis"
)

// Copies is how many replicas must have what a call wrote before its answer counts, and how long the
// server waits for them. The zero value asks for none. It is comparable.
type Copies struct {
	Replicas int
	Wait     time.Duration
}

// WAIT counts what its own connection wrote, at its own node. So it must follow the writes on one
// connection, which rueidis gives to a pipeline with a blocking command; and no redirect may be
// followed for the writes alone, which rueidis does on a client of a Cluster, but not on one of its
// nodes.

const (
	redirects   = 3 * time.Second // how long a call is repeated whose slot is on its way
	failures    = time.Second     // how long one is repeated whose connection fails
	grace       = 3 * time.Second // an answer can be so late: rueidis sets no limit for blocking commands
	unknownNode = 50 * time.Millisecond
)

// grant runs a function that takes or prolongs a lock.
func (c *Caller) grant(ctx context.Context, copies Copies, function, key string, args ...string) (Reply, error) {
	if copies.Replicas == 0 {
		return decodeReply(c.call(ctx, function, key, args...))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.Closing, func() { cancel(context.Cause(c.Closing)) })()
	c.Pulse.asked()
	o := c.copied(ctx, copies, batched{function: function, key: key, args: args})
	c.Pulse.done(answered(o.Err))
	c.Changed(key)
	return o.Reply, o.Err
}

// copied runs one call, wherever its slot is, until ctx ends.
func (c *Caller) copied(ctx context.Context, copies Copies, call batched) (o Outcome) {
	to, loaded, unknown := c.home(ctx, call.key), false, false
	var unloaded error
	for began := time.Now(); ; {
		b := c.NewBatch(1, copies)
		b.append(call)
		o = b.send(ctx, to)[0]
		word, addr := redirect(o.Err)
		switch {
		case c.AutoLoad && !loaded && errors.Is(o.Err, ErrLibrary):
			unloaded, loaded = c.Load(ctx), true
		case word != "" && time.Since(began) < redirects && ctx.Err() == nil:
			to = c.follow(ctx, call.key, word, addr, to)
		case failed(o.Err) && time.Since(began) < failures && ctx.Err() == nil:
			unknown = unknown || Unknown(o.Err)
			pause(ctx, 10*time.Millisecond)
			to = c.home(ctx, call.key)
		case unloaded != nil && errors.Is(o.Err, ErrLibrary):
			return Outcome{Err: unloaded}.after(unknown)
		default:
			o.Err = c.named(ctx, call.key, o.Err)
			return o.after(unknown)
		}
	}
}

// after is the outcome of a call whose earlier tries may have been done, if unknown says so.
func (o Outcome) after(unknown bool) Outcome {
	if unknown && o.Err != nil {
		o.Err = &uncertain{o.Err}
	}
	return o
}

// follow returns where a redirect leads. A node that rueidis does not know yet makes it look.
func (c *Caller) follow(ctx context.Context, key, word, addr string, from place) place {
	addr = address(addr, from.addr)
	if node := c.Redis.Nodes()[addr]; node != nil {
		if word == "MOVED" {
			c.homes.set(cluster.Slot(key), cluster.Slot(key), addr)
		}
		return place{node: node, addr: addr, asking: word == "ASK"}
	}
	c.nudge(ctx, key)
	pause(ctx, unknownNode)
	return c.home(ctx, key)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// failed reports whether a connection failed. In rueidis' pool it may have been dead for a while, and
// every call that comes here may be repeated.
func failed(err error) bool {
	var f *failure
	return errors.As(err, &f)
}

// redirect returns the first word, and the address, of a refusal because a slot is elsewhere or on
// its way: nothing was done. Otherwise it returns "".
func redirect(err error) (word, addr string) {
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		return "", ""
	}
	_, text, _ := strings.Cut(refusal.Text, refusing)
	words := strings.Fields(text)
	switch {
	case len(words) == 3 && (words[0] == "MOVED" || words[0] == "ASK"):
		return words[0], words[2]
	case len(words) > 0 && words[0] == "TRYAGAIN":
		return words[0], ""
	}
	return "", ""
}

// wait is the command that waits for the copies.
func (c *Caller) wait(copies Copies, key string) rueidis.Completed {
	command := c.Redis.B().Wait().Numreplicas(int64(copies.Replicas)).Timeout(max(1, copies.Wait.Milliseconds())).Build()
	if c.Slotted {
		return command.SetSlot(key)
	}
	return command
}

func (c *Caller) asking(key string) rueidis.Completed {
	return c.Redis.B().Arbitrary("ASKING").Build().SetSlot(key)
}

// counted turns grants into errors if too few replicas have them.
func (copies Copies) counted(outcomes []Outcome, result rueidis.RedisResult) {
	acked, err := result.AsInt64()
	if err == nil && acked >= int64(copies.Replicas) {
		return
	}
	refusal := &Refusal{Kind: ErrNotReplicated, Text: fmt.Sprintf("%d of %d have it after %v", acked, copies.Replicas, copies.Wait), partial: true}
	if err != nil {
		refusal.Text = "WAIT: " + err.Error()
	}
	if errors.Is(Classify(context.Background(), err), ErrDenied) {
		refusal.Kind = ErrDenied
	}
	for i, o := range outcomes {
		if o.Err == nil && o.Reply.Yes {
			outcomes[i].Err = refusal
		}
	}
}
