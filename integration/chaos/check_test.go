// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// second is a stamp in seconds.
func second(s float64) stamp { return stamp(s * float64(time.Second)) }

// held is a hold from one second to another, of a worker of that name.
func held(owner string, token int64, level oracle.Level, from, to float64) *hold {
	return &hold{Who: owner, Lock: "a", Level: level, Owner: owner, Token: token,
		Start: second(from - 0.1), Enter: second(from), Last: second(to), End: second(to + 0.1)}
}

// What a kind does is said for those that are chosen somewhere. The oracle judges at the level of its victim.
func TestWhatKindsDo(t *testing.T) {
	known := map[kind]bool{failoverStray: true}
	for _, k := range handKinds {
		known[k] = true
	}
	for _, s := range shapes {
		for _, k := range s.kinds {
			known[k] = true
			require.Equal(t, k.isCut() && k != cutPair, k.isCut() && planned(k), "a replica is promoted by %s", k)
		}
	}
	for k := range causes {
		require.Contains(t, known, k)
	}
	for k, levels := range map[kind][]oracle.Level{
		netReset: nil, serverRestart: nil, failoverOrder: nil, cutPair: nil,
		failoverTake: {oracle.Default},
		cutOff:       {oracle.Default},
		cutHeir:      {oracle.Default, oracle.Guarded},
		failoverAsk:  {oracle.Default, oracle.Guarded},
		sentinelSide: {oracle.Default, oracle.Guarded},
		serverForget: {oracle.Default, oracle.Replicas},
		keyDelete:    {oracle.Default, oracle.Guarded, oracle.Replicas, oracle.Quorum},
	} {
		for _, level := range []oracle.Level{oracle.Default, oracle.Guarded, oracle.Replicas, oracle.Quorum} {
			require.Equal(t, slices.Contains(levels, level), k.excuses(level), "%s at the level %s", k, level)
		}
	}
}

func TestCallsThatHangAreFound(t *testing.T) {
	calls := []*call{
		{Process: "p", Call: "acquire", Start: second(1), End: second(4), Limit: time.Second},
		{Process: "q", Call: "acquire", Start: second(1), End: second(9), Limit: time.Second},
		{Process: "r", Call: "acquire", Start: second(1), End: second(9), Limit: time.Second},
		{Process: "k", Call: "try", Start: second(1)},
		{Process: "n", Call: "try", Start: second(1)},
	}
	pause := &fault{Kind: clientPause, Target: "r", Start: second(2), End: second(8)}
	found := checkHangs(calls, []*fault{pause}, map[string]bool{"k": true})
	require.Equal(t, "hang hang", rules(found))
	require.Contains(t, found[0].Text, "q.")
	require.Contains(t, found[1].Text, "n.")
}

func TestALockThatIsStuckIsFound(t *testing.T) {
	holds := []*hold{held("x", 1, oracle.Default, 1, 2), held("y", 2, oracle.Default, 12, 13)}
	wait := &call{Process: "z", Call: "acquire", Lock: "a", Start: second(1.5), End: second(14)}
	require.Equal(t, "stuck", rules(checkStuck([]*call{wait}, holds, second(0.5), idle)))
	require.Empty(t, checkStuck([]*call{wait}, holds, second(2.5), idle), "the storm was not over")
	require.Empty(t, checkStuck([]*call{wait}, holds, second(0.5), idle+guard), "nobody gets it so soon")
	wait.Start = second(9)
	require.Empty(t, checkStuck([]*call{wait}, holds, second(0.5), idle), "nobody waited for long")
}

func TestWhatHasGrownIsFound(t *testing.T) {
	early := figures{heap: 40 * mebibyte, goroutines: 400, connections: 60, memory: 20 * mebibyte}
	grown := func(late figures) (n int) {
		for _, g := range growths(early, late) {
			if g.grown() {
				n++
			}
		}
		return n
	}
	require.Zero(t, grown(figures{heap: 60 * mebibyte, connections: 80, goroutines: 500, memory: 20 * mebibyte}))
	late := figures{heap: 80 * mebibyte, goroutines: 800, connections: 120, memory: 40 * mebibyte, keys: 1}
	require.Equal(t, 5, grown(late))
}
