// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cluster"
)

// Action says what was done at a node, or what was found there.
type Action string

// What was done. In a dry run "would be " stands before it, and a replica WouldFollow.
const (
	Unchanged  Action = "unchanged"  // the node had what was asked for already
	Loaded     Action = "loaded"     // there was none
	Upgraded   Action = "upgraded"   // there was an older one
	Downgraded Action = "downgraded" // there was a newer one (forced)
	Replaced   Action = "replaced"   // there was other code of this version, or another's (forced)
	Unloaded   Action = "unloaded"   // it was deleted
	Followed   Action = "followed"   // a replica that has what its primary has, by replication
)

// What was found by Verify, or in the look at every node after a change.
const (
	Missing  Action = "missing"  // the node has no library
	Outdated Action = "outdated" // an older one
	Newer    Action = "newer"    // a newer one. That is no error, if it is of the same contract
	Differs  Action = "differs"  // other code of the same version
	Foreign  Action = "foreign"  // another library has our name, or registers a function of ours
	Present  Action = "present"  // it should have been unloaded
)

// Why nothing was done.
const (
	Refused    Action = "refused"     // NodeReport.Err wraps ErrContract or ErrForeign
	HeldBack   Action = "held back"   // another node refused, so nothing was written here either
	NotChecked Action = "not checked" // NodeReport.Detail says why the node was not asked
	Failed     Action = "failed"      // NodeReport.Err says why
)

// WouldFollow is a replica in a dry run whose primary would be written to.
const WouldFollow Action = "would follow"

const wouldBe = "would be "

// changed reports whether the action wrote something, or would in a dry run.
func (a Action) changed() bool {
	switch Action(strings.TrimPrefix(string(a), wouldBe)) {
	case Loaded, Upgraded, Downgraded, Replaced, Unloaded:
		return true
	}
	return false
}

// NodeReport is what happened at one node.
type NodeReport struct {
	Addr string       `json:"addr"`
	Role cluster.Role `json:"role"`
	// Before is the version found at first: "" if there was none or it was not seen, and "foreign"
	// if it is not Holdfast.
	Before string `json:"before"`
	// After is the version found at last. In a dry run it is the one that would be found.
	After  string `json:"after"`
	Action Action `json:"action"`
	Detail string `json:"detail,omitempty"` // why, for those that need an explanation
	// Risks are settings of the server by which it can lose locks, or grant one twice, in words for
	// people: see docs/guarantees.md. Only Verify looks for them. They are no error.
	Risks []string `json:"risks,omitempty"`
	Err   error    `json:"-"` // a *NodeError, or nil
}

// Report is what happened at all nodes: primaries first, then replicas, each sorted by address.
type Report struct {
	Library string       `json:"library"` // the name of the library that was offered
	Version string       `json:"version"` // and its version
	DryRun  bool         `json:"dry_run"`
	Nodes   []NodeReport `json:"nodes"`
}

// Changed reports whether any node was written to, or would be in a dry run.
func (r Report) Changed() bool {
	return slices.ContainsFunc(r.Nodes, func(n NodeReport) bool { return n.Action.changed() })
}
