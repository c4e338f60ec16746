// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
)

// DefaultTimeout is the Timeout of Options that name none.
const DefaultTimeout = 5 * time.Second

// Options of Load, Verify and Unload. The zero value is usable.
type Options struct {
	// DryRun looks and decides, but writes nothing. The report says what would be done.
	DryRun bool

	// Force loads over a newer library, over one of another contract (another major number), and
	// over another library under our name, and deletes other libraries that register a function of
	// ours. Unload with Force deletes what has our name even
	// if it is not Holdfast.
	Force bool

	// Timeout is how long one node may take to answer, and how long a replica may take to follow
	// its primary. The context bounds the whole call. Default: DefaultTimeout.
	Timeout time.Duration

	// Dial opens a client to one node that the given client has no connection to: a replica of a
	// single server or behind Sentinel, or a primary without slots. The client is closed before the
	// call returns. See Dialer. Default: none. Such replicas are then reported as NotChecked, and
	// such primaries as Failed.
	Dial func(ctx context.Context, addr string) (rueidis.Client, error)

	// Also are nodes to look at beside those that the deployment's servers name: replicas that sentinels
	// know of, and that are cut off from their primary. One that is Down is reported as NotChecked.
	Also []cluster.Node

	// Source is the library to load, verify or unload: functions.Source, functions.FencedSource, or
	// an older version of one of them, to roll back with Force. Each is looked after for itself: what is done to
	// one leaves the other as it is. Default: functions.Source.
	Source string

	// Progress is called for every node as soon as its entry in the report is final. It is never
	// called concurrently.
	Progress func(NodeReport)
}

// Load brings the library to every primary of the client's deployment and blocks until every node
// has it, replicas too. Where a newer one is, that stays: it serves what the one offered does. So a service that
// loads when it starts can be rolled back.
//
// It first looks at all primaries. If one of them refuses (ErrContract, ErrForeign), nothing is written anywhere. Then it writes to all primaries whose code differs, at once. A primary that
// fails does not stop the others: an upgrade within a major number is compatible with its callers,
// so a mixture of versions is safe until Load is called again. If a primary was demoted meanwhile, its
// successor is loaded, once, and so is a primary that joined meanwhile. Finally Load looks at every node.
// That look decides about a write whose outcome is unknown, because the connection broke.
//
// The report has an entry for every node, also when an error is returned. The error joins a
// *NodeError for each node that failed or refused. FUNCTION LOAD REPLACE is atomic on each server:
// calls find the old library or the new one. Two loaders of different versions at the same time may
// overwrite each other; each node is compared again directly before it is written.
//
// The client is the caller's and stays open. Safe for concurrent use.
func Load(ctx context.Context, client rueidis.Client, opt Options) (Report, error) {
	return change(ctx, client, opt, func(offered library) task { return loading{offered, opt.Force} })
}

// Unload deletes the library, of whatever version, from every primary and blocks until no node has
// it any more. It refuses (ErrForeign) to delete a library under our name that is not Holdfast,
// unless forced. Locks that are held stay in the database until their leases end, but nobody can
// renew or release them, and the fences of fenced writes stay for good: unload only what nobody uses.
// Otherwise it does as Load does.
func Unload(ctx context.Context, client rueidis.Client, opt Options) (Report, error) {
	return change(ctx, client, opt, func(offered library) task { return unloading{offered.id, opt.Force} })
}

// Verify looks at every node and returns an error that wraps ErrDiffers for each that runs neither
// the library of Options.Source nor a newer one of its contract: missing (a primary that joined the cluster later, for
// example), older, of another contract, changed, or not ours. It also looks at settings by which servers can lose
// locks (NodeReport.Risks), which are no error. It writes nothing and waits for no replica. The
// report has an entry for every node, also when an error is returned.
//
// The client is the caller's and stays open. Safe for concurrent use.
func Verify(ctx context.Context, client rueidis.Client, opt Options) (Report, error) {
	run, err := begin(client, opt)
	if err != nil {
		return Report{}, err
	}
	defer run.conns.close()
	nodes, err := run.conns.survey(ctx)
	if err != nil {
		return run.report(), err
	}
	run.each(nodes, func(m *member) {
		found, err := run.look(ctx, m)
		if err != nil {
			m.unseen("verify", err)
			return
		}
		if client, err := run.conns.to(ctx, m.Addr); err == nil {
			ctx, cancel := context.WithTimeout(ctx, run.opt.Timeout)
			defer cancel()
			m.Risks = risks(ctx, client, m.node)
		}
		action, err := loading{offered: run.offered}.check(found)
		m.settle(action, "verify", err)
	})
	return run.finish()
}

func begin(client rueidis.Client, opt Options) (*run, error) {
	if opt.Timeout <= 0 {
		opt.Timeout = DefaultTimeout
	}
	if opt.Source == "" {
		opt.Source = functions.Source
	}
	id, known := identify(opt.Source)
	if !known {
		return nil, fmt.Errorf("load: %w: Options.Source must begin with #!lua name=%s or %s", ErrSource,
			functions.Library, functions.FencedLibrary)
	}
	offered := library{id: id, present: true, code: opt.Source, version: versionOf(opt.Source)}
	if offered.version == "" {
		return nil, fmt.Errorf("load: %w: Options.Source has no line: local VERSION = '1.2.3'", ErrSource)
	}
	return &run{
		opt:     opt,
		offered: offered,
		conns:   &connections{client: client, dial: opt.Dial, timeout: opt.Timeout, also: opt.Also},
		members: map[string]*member{},
	}, nil
}

// change is the common part of Load and Unload: look at all nodes, write where the task says so,
// and look again.
func change(ctx context.Context, client rueidis.Client, opt Options, bring func(library) task) (Report, error) {
	run, err := begin(client, opt)
	if err != nil {
		return Report{}, err
	}
	defer run.conns.close()
	job := bring(run.offered)
	nodes, err := run.conns.survey(ctx)
	if err != nil {
		return run.report(), err
	}
	refused := run.plan(ctx, nodes, job)
	if refused || opt.DryRun {
		run.hold(nodes, job, refused)
		return run.finish()
	}
	err = run.write(ctx, nodes, job)
	after, surveyErr := run.conns.survey(ctx)
	for err == nil && surveyErr == nil {
		joined := slices.DeleteFunc(primaries(after), func(n cluster.Node) bool { return run.members[n.Addr] != nil })
		if len(joined) == 0 {
			break
		}
		err = run.write(ctx, joined, job)
		after, surveyErr = run.conns.survey(ctx)
	}
	if surveyErr != nil {
		after = nodes
	}
	run.each(after, func(m *member) { run.confirm(ctx, m, job) })
	report, failed := run.finish()
	return report, errors.Join(failed, err, surveyErr)
}
