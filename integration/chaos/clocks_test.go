package main

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Where clocks go back, no server loses its memory, and that leaves faults in each profile.
func TestClocksAreStepped(t *testing.T) {
	if wallClock() == "" {
		t.Skip("no C compiler")
	}
	ways := map[kind]bool{}
	for _, s := range shapes {
		for _, profile := range s.profiles {
			for seed := range uint64(40) {
				c := s.clocks(rand.New(rand.NewPCG(seed, 3)), profile)
				hands := s.of(profile, c.kinds(handLane, handKinds))
				steps := s.of(profile, c.kinds(clockLane, clockKinds))
				require.NotEmpty(t, hands)
				require.Len(t, steps, len(c.left))
				for k := range c.left {
					ways[k] = true
					require.Zero(t, s.replicas, "servers that watch each other")
					require.Contains(t, steps, k)
				}
				if c.back() {
					for _, k := range append(hands, s.of(profile, c.kinds(serverLane, s.kinds))...) {
						require.False(t, k.losesMemory(), "%s in %s %s", k, s.name, profile)
					}
				}
			}
		}
	}
	require.Len(t, ways, 2)
}
