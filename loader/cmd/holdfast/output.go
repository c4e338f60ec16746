// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/loader"
)

// output prints what happens, and keeps it for the end.
type output struct {
	*app
	nodes  []loader.NodeReport
	errors []error // that belong to no node
	code   int     // the worst so far
	held   bool    // another deployment refuses, so this is a dry run
}

// node prints the line of one node. It is loader.Options.Progress.
func (o *output) node(n loader.NodeReport) {
	if o.knows(n.Addr) {
		return
	}
	if o.held && strings.HasPrefix(string(n.Action), "would ") {
		n.Action, n.After = loader.HeldBack, n.Before
		n.Detail = "another deployment refused, so nothing was written"
	}
	o.nodes = append(o.nodes, n)
	if o.cfg.json {
		return
	}
	const none = "none"
	versions := cmp.Or(n.After, none)
	if n.Before != n.After {
		versions = cmp.Or(n.Before, none) + " -> " + versions
	}
	if n.Action == loader.Failed || n.Action == loader.NotChecked {
		versions = "?"
	}
	line := fmt.Sprintf("%-24s %-8s %-12s %s", n.Addr, n.Role, n.Action, versions)
	if n.Detail != "" && (o.cfg.command != "version" || n.Action == loader.Failed) {
		line += "  (" + n.Detail + ")"
	}
	fmt.Fprintln(o.stdout, line)
	for _, risk := range n.Risks {
		fmt.Fprintln(o.stdout, "    risk:", risk)
	}
}

func (o *output) knows(addr string) bool {
	return slices.ContainsFunc(o.nodes, func(n loader.NodeReport) bool { return n.Addr == addr })
}

func (o *output) refused() bool {
	return slices.ContainsFunc(o.nodes, func(n loader.NodeReport) bool { return n.Action == loader.Refused })
}

// problem prints those of the joined errors that belong to no node, because a node's line has its
// error already. All count for the exit code.
func (o *output) problem(err error) {
	for _, err := range apart(err) {
		code := o.codeOf(err)
		o.count(code)
		node := (*loader.NodeError)(nil)
		hasLine := errors.As(err, &node)
		if !hasLine || code == exitFailed {
			o.errors = append(o.errors, err)
		}
		if !hasLine && !o.cfg.json {
			fmt.Fprintf(o.stderr, "holdfast %s: %v\n", o.cfg.command, err)
		}
	}
}

// apart is what errors.Join made of, and nothing of nil. An error that wraps two others is one.
func apart(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok || fmt.Sprintf("%T", err) != joinedType:
		return []error{err}
	}
	for _, each := range joined.Unwrap() {
		all = append(all, apart(each)...)
	}
	return all
}

var joinedType = fmt.Sprintf("%T", errors.Join(io.EOF))

func (o *output) codeOf(err error) int {
	differs := errors.Is(err, loader.ErrDiffers)
	switch {
	case differs && o.cfg.command == "version", errors.Is(err, errPresumed):
		return exitOK
	case differs && o.cfg.command == "verify":
		return exitDiffers
	case !differs && (errors.Is(err, loader.ErrContract) || errors.Is(err, loader.ErrForeign)):
		return exitRefused
	}
	return exitFailed
}

// count keeps the worst: a failure above a refusal above a difference.
func (o *output) count(code int) {
	rank := map[int]int{exitOK: 0, exitDiffers: 1, exitRefused: 2, exitFailed: 3}
	if rank[code] > rank[o.code] {
		o.code = code
	}
}

// finish prints the last line, or the JSON object, and returns the exit code.
func (o *output) finish() error {
	// The lines came as the nodes answered.
	slices.SortStableFunc(o.nodes, func(a, b loader.NodeReport) int { return strings.Compare(string(a.Role), string(b.Role)) })
	library := o.cfg.chosen()
	report := loader.Report{Library: library.name, Version: library.version, DryRun: o.cfg.dryRun, Nodes: nonNil(o.nodes)}
	code := o.code
	if code == exitRefused && report.Changed() && !report.DryRun {
		code = exitFailed // what it refuses came when others were written already
	}
	if o.cfg.json {
		o.printJSON(struct {
			head
			Changed bool `json:"changed"`
			loader.Report
		}{o.head(code, o.errors...), report.Changed(), report})
		return exit(code)
	}
	switch {
	case code == exitRefused:
		fmt.Fprintf(o.stderr, "holdfast %s: refused, and nothing was written; --force overrides this\n", o.cfg.command)
	case code == exitDiffers:
		fmt.Fprintf(o.stderr, "holdfast verify: not every node has %s; %s\n", library.version, o.advice())
	case code != exitOK:
		fmt.Fprintf(o.stderr, "holdfast %s: failed; running it again is safe\n", o.cfg.command)
	case o.cfg.command == "version":
	case o.cfg.command == "verify":
		fmt.Fprintf(o.stdout, "%s %s is on %s\n", library.name, o.served(library.version), o.all())
	case !report.Changed():
		fmt.Fprintln(o.stdout, "nothing to change")
	case o.cfg.dryRun:
		fmt.Fprintln(o.stdout, "dry run: nothing was written")
	case o.cfg.command == "unload":
		fmt.Fprintf(o.stdout, "%s is gone from %s\n", library.name, o.all())
	default:
		fmt.Fprintf(o.stdout, "%s %s is on %s\n", library.name, o.served(library.version), o.all())
	}
	return exit(code)
}

// advice says what to do about the differences that verify found. Load would refuse what is of another
// contract or another's, and it writes to primaries only.
func (o *output) advice() string {
	found := map[loader.Action]bool{}
	replicas, contract := true, false
	for _, n := range o.nodes {
		found[n.Action] = true
		contract = contract || errors.Is(n.Err, loader.ErrContract)
		wanting := n.Action == loader.Missing || n.Action == loader.Outdated || n.Action == loader.Differs
		replicas = replicas && !(wanting && n.Role == cluster.Primary)
	}
	switch {
	case found[loader.Foreign]:
		return "another's library has its names: \"holdfast load --force\" replaces that"
	case contract && found[loader.Newer]:
		return "a newer contract is there: use the holdfast command of that release, " +
			"or \"holdfast load --force\" goes back, when nobody uses that one any more"
	case contract:
		return "an older contract is there: \"holdfast load --force\" ends it, when nobody uses it any more"
	case replicas:
		return "the primaries have it: see why the replicas do not follow them"
	}
	return "\"holdfast load\" brings it"
}

// served is the version that the nodes have.
func (o *output) served(version string) string {
	if slices.ContainsFunc(o.nodes, func(n loader.NodeReport) bool { return n.Action == loader.Newer }) {
		return version + " or newer"
	}
	return version
}

// all names the nodes that were looked at, and those that were not.
func (o *output) all() string {
	n, unchecked := 0, 0
	for _, node := range o.nodes {
		if node.Action == loader.NotChecked {
			unchecked++
		} else {
			n++
		}
	}
	switch {
	case unchecked > 0:
		return fmt.Sprintf("%d of %d nodes; the others were not checked", n, n+unchecked)
	case n == 1:
		return "the node"
	}
	return fmt.Sprintf("all %d nodes", n)
}
