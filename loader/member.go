// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
)

// member is what a run knows about one node. While run.each works on it, it belongs to one
// goroutine.
type member struct {
	NodeReport
	node   cluster.Node
	seen   bool    // Before and first are set
	first  library // what was found at first
	blind  error   // why it could not be looked at for the plan
	tried  Action  // what was written or tried, or ""
	failed error   // why it was not written, or not acknowledged
	note   string  // what people should know of what was written
	told   bool    // Options.Progress knows
	final  bool
}

// settle makes the entry final.
func (m *member) settle(action Action, op string, err error) {
	m.Action, m.final = action, true
	m.Detail, m.Err = "", nil
	if err != nil {
		m.Detail = err.Error()
		m.Err = &NodeError{Addr: m.Addr, Op: op, Err: err}
	}
}

// unseen makes the entry of a node that could not be looked at final. That is a failure, unless
// nothing depends on the node: a replica that is down, or that the caller gave no way to reach,
// gets the library from its primary anyway.
func (m *member) unseen(op string, err error) {
	harmless := errors.Is(err, ErrDown) || errors.Is(err, ErrNoConnection) && m.Role == cluster.Replica
	if m.Role == cluster.Primary && len(m.node.Slots) > 0 {
		harmless = false
	}
	if !harmless {
		m.settle(Failed, op, err)
		return
	}
	m.settle(NotChecked, op, nil)
	m.Detail = err.Error()
}

const lookAgain = 3

// anothers reports whether err is the end of the context of another call. rueidis opens a
// connection with the context of the first call that needs it, for all that wait for it. The caller
// has checked its own context.
func anothers(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// look reads what the node has, and notes it.
func (r *run) look(ctx context.Context, m *member) (library, error) {
	if m.node.Down {
		return library{}, ErrDown
	}
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	client, err := r.conns.to(ctx, m.Addr)
	if err != nil {
		return library{}, err
	}
	found, err := list(ctx, client, r.offered.id)
	for tries := 0; tries < lookAgain && ctx.Err() == nil && anothers(err); tries++ {
		found, err = list(ctx, client, r.offered.id)
	}
	if err != nil {
		return library{}, err
	}
	if !m.seen {
		m.seen, m.first, m.Before = true, found, found.label()
	}
	m.After = found.label()
	return found, nil
}

// The intervals at which a replica is asked whether it has followed. Replication takes about a
// round trip.
const (
	followFirst = time.Millisecond
	followLast  = 100 * time.Millisecond
)

// awaitCheck looks until the node has what it should have, or Options.Timeout is over. It returns
// the verdict of the last look. seen is false if no look succeeded.
func (r *run) awaitCheck(ctx context.Context, m *member, job task) (action Action, seen bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	for pause := followFirst; ; pause = min(2*pause, followLast) {
		found, lookErr := r.look(ctx, m)
		if lookErr == nil {
			action, err = job.check(found)
			seen = true
		} else if !seen && (replied(lookErr) || !replied(err)) {
			err = lookErr
		}
		if err == nil || m.Role == cluster.Primary || errors.Is(err, ErrDown) || errors.Is(err, ErrNoConnection) {
			return action, seen, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return action, seen, err
		}
	}
}

// replied reports whether err is what the server said. That is a better reason than that there was no
// time left to hear it again.
func replied(err error) bool {
	var reply *rueidis.RedisError
	return errors.As(err, &reply)
}

// confirm looks at one node after the change and makes its entry final.
func (r *run) confirm(ctx context.Context, m *member, job task) {
	if errors.Is(m.failed, ErrDemoted) {
		m.Role = cluster.Replica // it said so itself; another node's view may be older
	}
	action, seen, err := r.awaitCheck(ctx, m, job)
	followed := m.Role == cluster.Replica && m.seen && differs(job, m.first)
	switch {
	case err == nil && followed && (m.tried == "" || m.failed != nil):
		m.settle(Followed, job.op(), nil)
	case err == nil && m.tried != "" && action != Newer: // which another loader brought
		m.settle(m.tried, job.op(), nil) // what is found counts, even if the reply was lost
		m.Detail = m.note
	case err == nil:
		m.settle(action, job.op(), nil)
	case m.Action == Refused:
		m.settle(Refused, job.op(), m.failed)
	case m.failed != nil && !errors.Is(m.failed, ErrDown):
		m.settle(Failed, job.op(), m.failed)
	case !seen:
		m.unseen(job.op(), err)
	default:
		m.settle(action, job.op(), err)
	}
}

func differs(job task, found library) bool {
	_, err := job.check(found)
	return err != nil
}
