// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
)

// run is one call of Load, Verify or Unload.
type run struct {
	opt     Options
	offered library
	conns   *connections
	members map[string]*member // by address; only the calling goroutine adds to it
	tell    sync.Mutex         // Options.Progress is never called concurrently
}

// each calls work for all nodes at once, and returns when all are done.
func (r *run) each(nodes []cluster.Node, work func(*member)) {
	var all sync.WaitGroup
	for _, node := range nodes {
		m := r.members[node.Addr]
		if m == nil {
			m = &member{}
			r.members[node.Addr] = m
		}
		m.node, m.Addr, m.Role = node, node.Addr, node.Role
	}
	for _, node := range nodes {
		m := r.members[node.Addr]
		all.Go(func() {
			work(m)
			r.progress(m)
		})
	}
	all.Wait()
}

func (r *run) progress(m *member) {
	r.tell.Lock()
	defer r.tell.Unlock()
	if m.final && !m.told && r.opt.Progress != nil {
		r.opt.Progress(m.NodeReport)
	}
	m.told = m.told || m.final
}

func primaries(nodes []cluster.Node) []cluster.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool { return n.Role != cluster.Primary })
}

// plan looks at all nodes and decides for each primary what is to be done. It reports whether one
// of them refuses.
func (r *run) plan(ctx context.Context, nodes []cluster.Node, job task) (refused bool) {
	r.each(nodes, func(m *member) {
		found, err := r.look(ctx, m)
		if err != nil {
			m.blind = err
		} else if m.Role == cluster.Primary {
			m.Action, m.failed = job.decide(found)
		}
	})
	for _, m := range r.members {
		refused = refused || m.Action == Refused
	}
	return refused
}

// hold makes all entries final without having written anything: a dry run, or one that a node
// refused.
func (r *run) hold(nodes []cluster.Node, job task, refused bool) {
	r.each(nodes, func(m *member) {
		switch {
		case m.Action == Refused:
			m.settle(Refused, job.op(), m.failed)
		case m.blind != nil:
			m.unseen(job.op(), m.blind)
		case !differs(job, m.first) && !m.Action.changed():
			action, _ := job.check(m.first)
			m.settle(action, job.op(), nil)
		case refused:
			m.settle(HeldBack, job.op(), nil)
			m.Detail = "another node refused, so nothing was written"
		case m.Role == cluster.Replica:
			m.settle(WouldFollow, job.op(), nil)
			m.After = job.leaves()
		default:
			m.settle(wouldBe+m.Action, job.op(), nil)
			m.After = job.leaves()
		}
	})
}

// write does the task at all primaries. Where one turns out not to be a primary any more, it does
// the task at the successors, and at theirs.
func (r *run) write(ctx context.Context, nodes []cluster.Node, job task) error {
	r.each(primaries(nodes), func(m *member) { r.writeOne(ctx, m, job) })
	for known := 0; ; {
		demoted := map[string]bool{}
		for _, m := range r.members {
			if errors.Is(m.failed, ErrDemoted) {
				demoted[m.Addr] = true
			}
		}
		if len(demoted) == known {
			return nil
		}
		known = len(demoted)
		successors, err := r.successors(ctx, demoted)
		if err != nil {
			return err
		}
		r.each(successors, func(m *member) {
			if m.tried == "" {
				r.writeOne(ctx, m, job)
			}
		})
	}
}

// writeOne looks and decides again, because the plan may be as old as the slowest node's answer.
func (r *run) writeOne(ctx context.Context, m *member, job task) {
	m.Action, m.failed = "", nil
	found, err := r.look(ctx, m)
	if err != nil {
		m.failed = err
		return
	}
	action, err := job.decide(found)
	if err != nil {
		m.Action, m.failed = action, err
		return
	}
	if !action.changed() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	client, err := r.conns.to(ctx, m.Addr)
	if err != nil {
		m.failed = err
		return
	}
	m.tried = action
	m.note, m.failed = job.write(ctx, client, m.node, found)
}

// successors waits until the deployment names none of the demoted nodes as a primary, and returns
// the primaries that it names instead.
func (r *run) successors(ctx context.Context, demoted map[string]bool) ([]cluster.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opt.Timeout)
	defer cancel()
	tick := time.NewTicker(followLast)
	defer tick.Stop()
	for {
		nodes, err := r.conns.survey(ctx)
		if err == nil {
			now := primaries(nodes)
			if len(now) > 0 && !slices.ContainsFunc(now, func(n cluster.Node) bool { return demoted[n.Addr] }) {
				return now, nil
			}
			err = ErrDemoted
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("looking for the new primary: %w", err)
		}
	}
}

// report copies all entries, primaries first.
func (r *run) report() Report {
	report := Report{Library: r.offered.id.name, Version: r.offered.version, DryRun: r.opt.DryRun, Nodes: []NodeReport{}}
	for _, m := range r.members {
		report.Nodes = append(report.Nodes, m.NodeReport)
	}
	slices.SortFunc(report.Nodes, func(a, b NodeReport) int {
		if a.Role != b.Role {
			return strings.Compare(string(a.Role), string(b.Role)) // "primary" before "replica"
		}
		return strings.Compare(a.Addr, b.Addr)
	})
	return report
}

// finish makes the remaining entries final, those of nodes that left the deployment meanwhile, and
// joins the errors.
func (r *run) finish() (Report, error) {
	for _, m := range r.members {
		if !m.final {
			m.settle(NotChecked, "", nil)
			m.Detail = "the node left the deployment meanwhile"
		}
		r.progress(m)
	}
	report := r.report()
	var failed []error
	for _, node := range report.Nodes {
		if node.Err != nil {
			failed = append(failed, node.Err)
		}
	}
	return report, errors.Join(failed...)
}
