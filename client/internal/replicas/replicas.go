// SPDX-License-Identifier: Apache-2.0

// Package replicas makes calls whose answers count when so many replicas have what they wrote.
package replicas

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/redis/rueidis"
)

// The times of a call. One whose context ends is over then.
const (
	redirects   = 3 * time.Second // how long a call is repeated whose slot is on its way. Longer than a failover's last step
	failures    = time.Second     // how long one is repeated whose connection fails. Less than redirects: nobody may be there
	grace       = 3 * time.Second // an answer can be so late: rueidis sets no limit for blocking commands
	nudge       = 300 * time.Millisecond
	unknownNode = 50 * time.Millisecond // between two looks for a node. Less than nudge
	failedPause = 10 * time.Millisecond
)

// Backend is a Caller whose calls with Replicas wait for them. All others are the Caller's.
//
// WAIT counts what its own connection wrote, at its own node. So it must follow the writes on one
// connection, which rueidis gives to a pipeline with a blocking command; and no redirect may be
// followed for the writes alone, which rueidis does on a client of a Cluster, but not on one of its
// nodes.
type Backend struct {
	*fcall.Caller
	homes atomic.Pointer[homes] // nil: to be asked for
}

// New returns a Backend over c.
func New(c *fcall.Caller) *Backend { return &Backend{Caller: c} }

// Do makes one call, wherever its slot is.
func (b *Backend) Do(ctx context.Context, call fcall.Call) (fcall.Reply, error) {
	if call.Replicas == 0 {
		return b.Caller.Do(ctx, call)
	}
	o := b.repeat(ctx, call, b.home(ctx, b.Redis.Nodes(), call.Key))
	return o.Reply, o.Err
}

// repeat makes one call, again while its slot is on its way or its connection fails.
func (b *Backend) repeat(ctx context.Context, call fcall.Call, to place) (o fcall.Outcome) {
	healed, unknown := false, false
	for began := time.Now(); ; {
		o = b.pipeline(ctx, to, []fcall.Call{call})[0]
		word, addr := redirect(o.Err)
		since, over := time.Since(began), ctx.Err() != nil
		switch {
		case !healed && b.Heal(ctx, o.Err):
			healed = true
		case word != "" && since < redirects && !over:
			to = b.follow(ctx, call.Key, word, addr, to)
		case failed(o.Err) && since < failures && !over:
			unknown = unknown || fcall.Unknown(o.Err)
			pause(ctx, max(failedPause, since/2)) // a refused connection is dialed again each time
			to = b.home(ctx, b.Redis.Nodes(), call.Key)
		default:
			o.Err = b.Explain(o.Err)
			if o.Doubt = unknown; unknown && o.Err != nil {
				o.Err = fcall.Uncertain(o.Err)
			}
			return o
		}
	}
}

// group is what shares a pipeline: a node, and what its WAIT says.
type group struct {
	place
	replicas int
	wait     time.Duration
}

// Send makes calls as one pipeline for each node that they concern.
func (b *Backend) Send(ctx context.Context, calls []fcall.Call) []fcall.Outcome {
	if !slices.ContainsFunc(calls, func(call fcall.Call) bool { return call.Replicas > 0 }) {
		return b.Caller.Send(ctx, calls)
	}
	outcomes, groups, nodes := make([]fcall.Outcome, len(calls)), map[group][]int{}, b.Redis.Nodes()
	for i, call := range calls {
		var g group
		if call.Replicas > 0 {
			g = group{b.home(ctx, nodes, call.Key), call.Replicas, call.ReplicaWait}
		}
		groups[g] = append(groups[g], i)
	}
	var all sync.WaitGroup
	for g, of := range groups {
		some := make([]fcall.Call, len(of))
		for n, i := range of {
			some[n] = calls[i]
		}
		all.Go(func() {
			for n, o := range b.sendGroup(ctx, g, some) {
				outcomes[of[n]] = o
			}
		})
	}
	all.Wait()
	return outcomes
}

func (b *Backend) sendGroup(ctx context.Context, g group, calls []fcall.Call) []fcall.Outcome {
	if g.replicas == 0 {
		return b.Caller.Send(ctx, calls)
	}
	outcomes := b.pipeline(ctx, g.place, calls)
	for n, o := range outcomes {
		if word, _ := redirect(o.Err); word != "" || errors.Is(o.Err, fcall.ErrLibrary) { // it did nothing there
			outcomes[n] = b.repeat(ctx, calls[n], g.place)
		}
	}
	return outcomes
}

// pipeline makes calls of one node, and waits for the replicas of all.
func (b *Backend) pipeline(ctx context.Context, to place, calls []fcall.Call) []fcall.Outcome {
	replicas, wait := calls[0].Replicas, calls[0].ReplicaWait
	var commands rueidis.Commands
	for i := range calls {
		if to.asking {
			commands = append(commands, b.Redis.B().Arbitrary("ASKING").Build().SetSlot(calls[i].Key))
		}
		commands = append(commands, b.Command(&calls[i]))
	}
	command := b.Redis.B().Wait().Numreplicas(int64(replicas)).Timeout(max(1, wait.Milliseconds())).Build()
	commands = append(commands, command.SetSlot(calls[0].Key))
	outcomes := b.Pipe(ctx, b.Closing, calls, func(ctx context.Context, calls []fcall.Call, outcomes []fcall.Outcome) {
		limited, cancel := context.WithTimeout(ctx, wait+grace)
		defer cancel()
		b.decode(ctx, calls, to.node.DoMulti(limited, commands...), outcomes)
	})
	if b.Redis.Mode() == rueidis.ClientModeCluster && failed(outcomes[0].Err) {
		b.homes.Store(nil)
		b.nudge(ctx, calls[0].Key)
	}
	return outcomes
}

func (b *Backend) decode(ctx context.Context, calls []fcall.Call, results []rueidis.RedisResult, outcomes []fcall.Outcome) {
	each := (len(results) - 1) / len(calls) // with ASKING two
	for i := range calls {
		outcomes[i].Reply, outcomes[i].Err = b.Decode(ctx, &calls[i], results[(i+1)*each-1])
	}
	if err := acknowledged(calls[0], results[len(results)-1]); err != nil {
		for i, o := range outcomes {
			if o.Err == nil && o.Yes {
				outcomes[i].Err = err
			}
		}
	}
}

// acknowledged is the error of a yes that too few replicas have. It may be theirs later, and it was
// done: its outcome is unknown. So is that of a server that was demoted while it waited (UNBLOCKED).
func acknowledged(call fcall.Call, result rueidis.RedisResult) error {
	acked, err := result.AsInt64()
	if err == nil && acked >= int64(call.Replicas) {
		return nil
	}
	refusal := &fcall.Refusal{Kind: fcall.ErrNotReplicated}
	if refusal.Text = fmt.Sprintf("%d of %d have it after %v", acked, call.Replicas, call.ReplicaWait); err != nil {
		refusal.Text = "WAIT: " + err.Error()
	}
	if errors.Is(fcall.Classify(context.Background(), err), fcall.ErrDenied) {
		refusal.Kind = fcall.ErrDenied
	}
	return fcall.Uncertain(refusal)
}

// failed reports whether a call has no answer. In rueidis' pool a connection may have been dead for a
// while, and every call that comes here may be repeated.
func failed(err error) bool {
	var refusal *fcall.Refusal
	return errors.Is(err, fcall.ErrUnreachable) && !errors.As(err, &refusal)
}

// redirect returns the first word, and the address, of a refusal because a slot is elsewhere or on
// its way: nothing was done. Otherwise it returns "".
func redirect(err error) (word, addr string) {
	if m := redirection.FindStringSubmatch(fmt.Sprint(err)); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

var redirection = regexp.MustCompile(`: it refuses: (MOVED|ASK|TRYAGAIN) (?:\d+ (\S+)$)?`)

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
