// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// guard is what all callers ask for in rounds of the level Guard. It is longer than the longest
// lease there by what a deposed primary may take to hear of it.
const guard = 8 * time.Second

// longest is the longest lease, at each level of one deployment. It outlives the failover of a
// Cluster.
const longest = 6 * time.Second

// votingGuard and votingLongest are those of a quorum, where nobody is deposed. They are short, so
// that servers lose their memory often, but a lease outlives the restart of a majority.
const (
	votingGuard   = 3500 * time.Millisecond
	votingLongest = 3 * time.Second
)

// terms are what all callers of a round have in common.
type terms struct {
	Level   oracle.Level  // of those that are not at the level Replicas
	Guard   time.Duration // that all ask for; 0: nobody does
	Longest time.Duration // lease
}

func termsOf(s shape, profile string) terms {
	switch {
	case s.quorum():
		return terms{oracle.Quorum, votingGuard, votingLongest}
	case profile == profileGuard || profile == profileGuardAll:
		return terms{oracle.Guarded, guard, longest}
	}
	return terms{oracle.Default, 0, longest}
}
