package main

import (
	"math/rand/v2"
	"slices"
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

func TestRoundsAreChosen(t *testing.T) {
	turn, err := turns(settings{seed: 7, profile: profileReplicas})
	require.NoError(t, err)
	for i := range uint64(len(shapes)) {
		d, profile := turn(i)
		require.Equal(t, profileReplicas, profile)
		require.False(t, d.quorum(), "it has no replicas")
	}
	for _, none := range []settings{{shape: "quorum", profile: profileReplicas}, {shape: "none"}} {
		_, err = turns(none)
		require.Error(t, err)
	}
}

// A minority must cost a quorum nothing, so its strict profile has no fault that makes all wait. Cuts between
// servers are where there are replicas, and those that a profile admits.
func TestWhatProfilesHave(t *testing.T) {
	cuts := map[string][]kind{
		"cluster " + profileStrict:    {cutPair},
		"cluster " + profileGuard:     {cutOff, cutDeaf, cutMute, cutPair},
		"cluster " + profileReplicas:  {cutOff, cutDeaf, cutMute, cutHeir, cutPair},
		"sentinel " + profileStrict:   {cutPair},
		"sentinel " + profileGuard:    {cutPair},
		"sentinel " + profileReplicas: {sentinelOff, sentinelDeaf, sentinelMute, sentinelSide, cutPair},
	}
	waits := []kind{majorityForget, libFlush, voteDelete, lockBreak}
	for _, s := range shapes {
		for _, profile := range s.profiles {
			kinds := s.of(profile, slices.Concat(handKinds, s.kinds))
			require.NotEmpty(t, kinds, "%s %s", s.name, profile)
			require.Equal(t, s.quorum() && profile == profileAll, slices.Contains(kinds, voteDelete))
			isCut := slices.Compact(slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !k.isCut() }))
			require.Equal(t, s.replicas > 0, len(isCut) > 0, s.name)
			if want := cuts[s.name+" "+profile]; want != nil {
				require.Equal(t, want, isCut, "%s %s", s.name, profile)
			}
			for _, k := range waits {
				if s.quorum() && profile != profileGuard {
					require.Equal(t, profile == profileAll, slices.Contains(kinds, k), k)
				}
			}
			require.True(t, !s.quorum() || slices.Contains(kinds, serverForget))
		}
	}
}

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
				require.NotEmpty(t, hands)
				require.Len(t, s.of(profile, c.kinds(clockLane, clockKinds)), len(c.left))
				require.True(t, s.replicas == 0 || !c.used(), "servers that watch each other")
				for k := range c.left {
					ways[k] = true
				}
				forgets := slices.ContainsFunc(append(hands, s.of(profile, c.kinds(serverLane, s.kinds))...), kind.losesMemory)
				require.False(t, c.back() && forgets, "%s %s", s.name, profile)
			}
		}
	}
	require.Len(t, ways, 2)
}
