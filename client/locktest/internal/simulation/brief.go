// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A brief schedule has few actors, who meet on one or two locks for some seconds, and few faults,
// which lie close together. Most races need no more than that, so that a minute holds a hundred
// times as many. What takes long is left to the others: hours, leases that end by themselves after
// half a minute of silence, crowds.
//
// Each has a part of the deeds and of the faults only, and some of these often: what all have would
// meet what is rare in few of them.

// briefly is by how much less a fault lasts.
const briefly = 8

// levels are what brief schedules are played at, each as often as it is here.
var levels = []string{"default", "default", "default", "default", "default", "replicated", "guarded", "guarded",
	"quorum", "quorum"}

// mixOf returns the profile of a name: one of profiles, "brief" for a brief one of any level, or
// "brief" and the name of the one that it is made of.
func mixOf(name string, rng *rand.Rand) (profile, error) {
	base, isBrief := strings.CutPrefix(name, "brief")
	if base = strings.TrimPrefix(base, " "); name == "brief" {
		base = levels[rng.IntN(len(levels))]
	}
	if base == "default" {
		base = ""
	}
	p, known := profiles[base]
	if !known {
		return p, fmt.Errorf("no profile %q", name)
	}
	if isBrief {
		p = p.briefly(rng)
	}
	return p, nil
}

func (p profile) briefly(rng *rand.Rand) profile {
	p.brief, p.busy, p.calm = true, true, 0
	p.length = between(rng, 300*time.Millisecond, 5*time.Second)
	if p.level() == "quorum" { // each call is several
		p.length /= 2
	}
	if rng.IntN(3) == 0 {
		p.oneLock = true
	}
	if p.lease == 0 && rng.IntN(2) == 0 {
		p.lease = leases[rng.IntN(len(leases))]
		if p.replicated {
			p.lease = max(p.lease, 500*time.Millisecond) // replicas take a while
		}
	}
	if p.guard > 0 { // longer than locks are kept at least, and than a clock can be wrong by
		p.guard = []time.Duration{4, 5, 8}[rng.IntN(3)] * time.Second
	}
	if rng.IntN(3) == 0 { // work in peace, for long enough that locks must go on
		p.calmEnd = recovery + p.guard + between(rng, time.Second, 10*time.Second)
		p.length += p.calmEnd
	}
	faults := slices.Concat(networkFaults, serverFaults)
	p.deeds = some(rng, deeds, p.deeds, false, "acquire")
	p.faults, p.onlyFaults = some(rng, faults, p.faults, p.onlyFaults, ""), true
	return p
}

// some keeps about half of what can happen, and makes some of that likely. always stays.
func some[T any](rng *rand.Rand, all []odds[T], of map[string]int, only bool, always string) map[string]int {
	out := map[string]int{}
	for _, x := range all {
		switch way, weight := rng.IntN(6), x.weight(of, only); {
		case x.name == always || way < 2:
			out[x.name] = weight
		case way == 2 && weight > 0:
			out[x.name] = max(weight, 40)
		default:
			out[x.name] = 0
		}
	}
	return out
}
