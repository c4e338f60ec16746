// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// A profile is which faults a round has.
const (
	profileAll      = "all"      // each of them
	profileReplicas = "replicas" // those that admit nothing at the level Replicas
	profileStrict   = "strict"   // those that admit nothing at any level of the round

	// All callers are at the level Guard. A quorum has the first of these too: its strict faults are
	// those of a minority, which cost nothing, and these may make all wait.
	profileGuard    = "guard"     // those that admit no second holder there
	profileGuardAll = "guard-all" // each of them
)

// usual are the profiles of a deployment that has those levels.
var usual = []string{profileAll, profileReplicas, profileStrict, profileGuard, profileGuardAll}

// of are the kinds of a profile.
func (s shape) of(profile string, kinds []kind) []kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !s.permits(profile, k) })
}

// permits reports whether a profile has a kind.
func (s shape) permits(profile string, k kind) bool {
	switch {
	case s.quorum():
		calm := profile == profileAll || !k.excuses(oracle.Quorum)
		return calm && (profile != profileStrict || !k.waits())
	case k == voteDelete:
		return false
	}
	switch profile {
	case profileReplicas:
		return !k.excuses(oracle.Replicas)
	case profileStrict:
		return !k.excuses(oracle.Replicas) && !k.excuses(oracle.Default)
	case profileGuard: // a slot moves only when the guard has passed: lane.stretch
		return k == slotMove || !k.excuses(oracle.Guarded)
	}
	return true
}

// turns returns which deployment each round has, and which of its profiles.
func turns(s settings) (func(i uint64) (shape, string), error) {
	list := slices.DeleteFunc(slices.Clone(shapes), func(d shape) bool {
		return s.shape != "" && d.name != s.shape || s.profile != "" && !slices.Contains(d.profiles, s.profile)
	})
	if len(list) == 0 {
		return nil, fmt.Errorf("no deployment %q with the faults %q", s.shape, s.profile)
	}
	n := uint64(len(list))
	return func(i uint64) (shape, string) {
		d := list[i%n]
		if s.profile != "" {
			return d, s.profile
		}
		// Each deployment meets its next profile in its next turn, whatever the numbers of both.
		return d, d.profiles[(s.seed+i%n+i/n)%uint64(len(d.profiles))]
	}, nil
}
