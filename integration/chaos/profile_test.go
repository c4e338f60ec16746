// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever the seed, each deployment meets each of its profiles, and a quorum is in the first rounds,
// which is all that a minute has.
func TestRoundsTakeTurns(t *testing.T) {
	for seed := range uint64(10) {
		turn, err := turns(settings{seed: seed})
		require.NoError(t, err)
		met := map[string]map[string]bool{}
		for i := range uint64(len(shapes) * len(usual)) {
			d, profile := turn(i)
			require.Contains(t, d.profiles, profile)
			if met[d.name] == nil {
				met[d.name] = map[string]bool{}
			}
			met[d.name][profile] = true
			if i < 2 && d.quorum() {
				met["early"] = map[string]bool{}
			}
		}
		require.Contains(t, met, "early")
		for _, d := range shapes {
			require.Len(t, met[d.name], len(d.profiles), "%s, seed %d", d.name, seed)
		}
	}
}
