package main

import (
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
	_, err = turns(settings{shape: "quorum", profile: profileReplicas})
	require.Error(t, err)
	_, err = turns(settings{shape: "none"})
	require.Error(t, err)
}

// A minority must cost a quorum nothing, so the strict profile has no fault that makes all wait.
func TestWhatAQuorumMeets(t *testing.T) {
	d, err := shapeOf("quorum")
	require.NoError(t, err)
	every := append(append([]kind{}, handKinds...), d.kinds...)
	require.Contains(t, d.of(profileStrict, every), serverForget)
	for _, k := range []kind{majorityForget, libFlush, voteDelete, lockBreak} {
		require.NotContains(t, d.of(profileStrict, every), k)
		require.Contains(t, d.of(profileAll, every), k)
	}
	for _, s := range shapes {
		for _, profile := range s.profiles {
			require.NotEmpty(t, s.of(profile, append(append([]kind{}, handKinds...), s.kinds...)), "%s %s", s.name, profile)
			require.Equal(t, s.quorum() && profile == profileAll, s.permits(profile, voteDelete))
		}
	}
}

// Cuts between servers are where there are replicas, and those that a profile admits.
func TestWhoIsCutOff(t *testing.T) {
	for _, s := range shapes {
		require.Equal(t, s.replicas > 0, slices.ContainsFunc(s.kinds, kind.isCut), s.name)
	}
	for name, want := range map[string]map[string][]kind{
		"cluster": {
			profileStrict:   {cutPair},
			profileGuard:    {cutOff, cutDeaf, cutMute, cutPair},
			profileReplicas: {cutOff, cutDeaf, cutMute, cutHeir, cutPair},
		},
		"sentinel": {
			profileStrict:   {cutPair},
			profileGuard:    {cutPair},
			profileReplicas: {sentinelOff, sentinelDeaf, sentinelMute, sentinelSide, cutPair},
		},
	} {
		s, err := shapeOf(name)
		require.NoError(t, err)
		for profile, kinds := range want {
			chosen := slices.DeleteFunc(s.of(profile, s.kinds), func(k kind) bool { return !k.isCut() })
			require.Equal(t, kinds, slices.Compact(chosen), "%s %s", name, profile)
		}
	}
}
