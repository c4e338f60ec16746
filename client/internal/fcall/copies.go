package fcall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
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
	grace       = 5 * time.Second // an answer can be so late: rueidis sets no limit for blocking commands
	staleness   = time.Second     // how long one is repeated whose connection fails
	unknownNode = 50 * time.Millisecond
)

// place is where to send a call.
type place struct {
	node   rueidis.Client
	addr   string // of the node in a Cluster
	asking bool   // the slot is being imported there
}

// homes are the nodes of slots, as far as a redirect told.
type homes struct{ sync.Map }

// home is where a key's slot should be. A node that does not have it will say who does.
func (c *Caller) home(key string) place {
	if !c.Slotted {
		return place{node: c.Redis}
	}
	nodes := c.Redis.Nodes()
	if addr, ok := c.homes.Load(cluster.Slot(key)); ok && nodes[addr.(string)] != nil {
		return place{node: nodes[addr.(string)], addr: addr.(string)}
	}
	for addr, node := range nodes {
		return place{node: node, addr: addr}
	}
	return place{node: c.Redis}
}

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
	to, loaded, unknown := c.home(call.key), false, false
	for began := time.Now(); ; {
		b := c.NewBatch(1, copies)
		b.append(call)
		o = b.send(ctx, to)[0]
		word, addr := redirect(o.Err)
		switch {
		case c.AutoLoad && !loaded && errors.Is(o.Err, ErrLibrary):
			if err := c.Load(ctx); err != nil {
				return Outcome{Err: err}
			}
			loaded = true
		case word == "" && stale(o.Err) && time.Since(began) < staleness && ctx.Err() == nil:
			unknown = true
			pause(ctx, 10*time.Millisecond)
			to = c.home(call.key)
		case word == "" || time.Since(began) > redirects || ctx.Err() != nil:
			if unknown && o.Err != nil {
				o.Err = &uncertain{o.Err}
			}
			return o
		default:
			to = c.follow(ctx, call.key, word, addr, to)
		}
	}
}

// follow returns where a redirect leads. A node that rueidis does not know yet makes it look.
func (c *Caller) follow(ctx context.Context, key, word, addr string, from place) place {
	if strings.HasPrefix(addr, ":") { // the same host
		host, _, _ := net.SplitHostPort(from.addr)
		addr = net.JoinHostPort(host, addr[1:])
	}
	if node := c.Redis.Nodes()[addr]; node != nil {
		if word == "MOVED" {
			c.homes.Store(cluster.Slot(key), addr)
		}
		return place{node: node, addr: addr, asking: word == "ASK"}
	}
	_, _ = c.do(ctx, functions.Inspect, key) // follows the redirect
	pause(ctx, unknownNode)
	return c.home(key)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// stale reports whether a connection failed. rueidis notices that of one in its pool only when it is
// used again, and every call that comes here may be repeated.
func stale(err error) bool {
	var f *failure
	return errors.As(err, &f) && Unknown(err)
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
