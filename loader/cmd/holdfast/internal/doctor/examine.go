// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/sentinels"
)

// Deployment is what is examined: a single server, a primary with replicas, a Cluster.
type Deployment struct {
	Client rueidis.Client
	// Dial opens a client to one node that Client has no connection to. See loader.Options.
	Dial func(ctx context.Context, addr string) (rueidis.Client, error)
	// Of a primary behind Sentinel: the sentinels, the name they know it by, and how to ask one.
	Sentinels    []string
	Master       string
	DialSentinel func(ctx context.Context, addr string) (rueidis.Client, error)

	known  sentinels.Known // what a sentinel says
	silent bool            // a primary does not answer
}

// Options of Examine.
type Options struct {
	User     string   // that the clients of the deployments log in as
	Accept   []string // codes of findings that are notes, because the user lives with them
	As       string   // whose rights are looked at, if not User's
	Prefix   string   // of the locks' keys; "" leaves keys alone
	Guard    bool     // clients have Config.Guard
	Replicas bool     // clients have Config.Replicas
	// SlowTrip is the median round trip that is found slow.
	SlowTrip time.Duration
	// SlowScript is how long one that is found slow ran. The slow log has them from
	// slowlog-log-slower-than on.
	SlowScript time.Duration
	// Timeout is for each reply of a node.
	Timeout time.Duration
}

// examination is one call of Examine. A deployment's nodes are added before they are looked at.
type examination struct {
	opt         Options
	deployments []Deployment
	nodes       []*node
	report      Report
}

func (e *examination) find(code, node, mend, format string, args ...any) {
	e.report.Findings = append(e.report.Findings, find(code, node, mend, format, args...))
}

// skip notes what is not looked at, because a primary is silent.
func (e *examination) skip(what string) {
	e.find("not-checked", "", "examine again when it answers", "%s: a primary does not answer", what)
}

// Examine looks at all nodes of the deployments and blocks until all have answered, or failed. The
// report has an error for each primary that cannot be reached and for each node that stops answering,
// and findings for the rest. The clients are the caller's and stay open.
func Examine(ctx context.Context, deployments []Deployment, opt Options) Report {
	e := &examination{opt: opt, deployments: deployments, report: Report{Checked: checked(), Findings: []Finding{}}}
	defer e.close()
	for i := range deployments {
		e.meet(ctx, &deployments[i])
	}
	var all sync.WaitGroup
	for _, n := range e.nodes {
		all.Go(func() { n.examine(ctx) })
	}
	all.Wait()
	e.fold()
	for _, c := range wholeChecks {
		c.look(e, ctx)
	}
	for _, n := range e.nodes {
		if n.gone != nil {
			e.report.Errors = append(e.report.Errors, n.gone)
		}
		e.report.Nodes = append(e.report.Nodes, n.addr)
		e.report.Findings = append(e.report.Findings, n.found...)
	}
	e.report.accept(opt.Accept)
	e.report.sort()
	return e.report
}

// meet finds the nodes of a deployment, and what library each has.
func (e *examination) meet(ctx context.Context, d *Deployment) {
	d.known = e.ask(ctx, d)
	verified, err := loader.Verify(ctx, d.Client, e.loader(d))
	if len(verified.Nodes) == 0 && errors.Is(err, loader.ErrPermission) {
		// A client's user may not ask for the topology: what the client is connected to, it may ask.
		for _, addr := range slices.Sorted(maps.Keys(d.Client.Nodes())) {
			unknown := loader.NodeReport{Addr: addr, Role: cluster.Primary, Action: loader.Failed, Err: err}
			verified.Nodes = append(verified.Nodes, unknown)
		}
	} else if len(verified.Nodes) == 0 {
		e.report.Errors = append(e.report.Errors, err)
		return
	}
	for _, report := range verified.Nodes {
		if e.knows(report.Addr) {
			continue
		}
		if e.reach(report) {
			e.add(ctx, d, report)
		} else if report.Action == loader.Failed && report.Role == cluster.Primary {
			d.silent = true
		}
	}
	if d.silent { // there is no time to wait for it again
		e.skip("the library for fenced writes")
		return
	}
	e.fenced(ctx, d)
}

// fenced compares the library for fenced writes, if the deployment has it.
func (e *examination) fenced(ctx context.Context, d *Deployment) {
	opt := e.loader(d)
	opt.Source = functions.FencedSource
	verified, _ := loader.Verify(ctx, d.Client, opt) // what fails has failed for the other library
	used := slices.ContainsFunc(verified.Nodes, func(r loader.NodeReport) bool { return r.After != "" })
	for _, r := range verified.Nodes {
		at := slices.IndexFunc(e.nodes, func(n *node) bool { return n.addr == r.Addr })
		if used && at >= 0 && r.Action != loader.Failed {
			e.nodes[at].library(functions.FencedLibrary, verified.Version, r)
		}
	}
}

func (e *examination) loader(d *Deployment) loader.Options {
	return loader.Options{Dial: d.Dial, Timeout: e.opt.Timeout, Also: d.known.Replicas}
}

// fold drops nodes that were reached by two addresses, by name and by IP: a server has one run id.
func (e *examination) fold() {
	seen := map[string]bool{}
	e.nodes = slices.DeleteFunc(e.nodes, func(n *node) bool {
		id := n.info["run_id"]
		again := id != "" && seen[id]
		if seen[id] = true; again && n.dialed {
			n.redis.Close()
		}
		return again
	})
}

// knows reports whether a node is there already: a replica may be named beside its primary.
func (e *examination) knows(addr string) bool {
	return slices.ContainsFunc(e.nodes, func(n *node) bool { return n.addr == addr })
}

// reach reports whether a node answers, and says so if not.
func (e *examination) reach(r loader.NodeReport) bool {
	answers := r.Err == nil || errors.Is(r.Err, loader.ErrPermission) || errors.Is(r.Err, loader.ErrUnsupported)
	switch {
	case errors.Is(r.Err, loader.ErrDown), r.Action == loader.NotChecked && r.Detail == loader.ErrDown.Error():
		mend := "start the primary again" // to forget it would keep its replica from being promoted
		if r.Role == cluster.Replica {
			mend = "start the replica again. If it is gone for good: CLUSTER FORGET at every other node; or, while the " +
				"primary answers, SENTINEL RESET at one sentinel after the other, 30 s apart"
		}
		e.find("node-down", r.Addr, mend, "the Cluster, or the sentinels, mark the %s as failed", r.Role)
		if r.Err != nil { // a primary with slots
			e.report.Errors = append(e.report.Errors, r.Err)
		}
		return false
	case r.Action == loader.Failed && !answers && r.Role == cluster.Primary:
		e.report.Errors = append(e.report.Errors, r.Err)
		return false
	case r.Action == loader.NotChecked, r.Action == loader.Failed && !answers:
		e.find("node-unreachable", r.Addr, "start it, or let this machine reach the address that it announces "+
			"(replica-announce-ip, replica-announce-port)", "the %s cannot be reached: %s", r.Role, r.Detail)
		return false
	}
	return true
}

func (e *examination) add(ctx context.Context, d *Deployment, r loader.NodeReport) {
	n := &node{addr: r.Addr, role: r.Role, of: d, opt: &e.opt, redis: d.Client.Nodes()[r.Addr],
		refused: map[string]string{}}
	if n.redis == nil && d.Dial != nil {
		dialed, err := d.Dial(ctx, r.Addr)
		if err != nil {
			e.report.Errors = append(e.report.Errors, fmt.Errorf("%s: %w", r.Addr, err))
			return
		}
		n.redis, n.dialed = dialed, true
	}
	n.library(functions.Library, functions.Version, r)
	e.nodes = append(e.nodes, n)
}

func (e *examination) close() {
	for _, n := range e.nodes {
		if n.dialed {
			n.redis.Close()
		}
	}
}
