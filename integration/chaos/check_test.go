package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// second is a stamp in seconds.
func second(s float64) stamp { return stamp(s * float64(time.Second)) }

// held is a hold from one second to another, of a worker of that name.
func held(owner string, token int64, level string, from, to float64) *hold {
	return &hold{Process: owner, Worker: 1, Lock: "a", Level: level, Owner: owner, Token: token,
		Start: second(from - 0.1), Enter: second(from), Last: second(to), End: second(to + 0.1)}
}

func struck(k kind, from, to float64) *fault {
	return &fault{Kind: k, Start: second(from), End: second(to)}
}

func TestTwoInsideAreFound(t *testing.T) {
	holds := []*hold{held("x", 1, levelDefault, 1, 5), held("y", 2, levelReplicas, 4, 6)}
	f := checkExclusion(holds, nil)
	require.Equal(t, "exclusion", rules(f.violations))
	model, decided := checkModel(holds, nil)
	require.True(t, decided)
	require.Equal(t, "model", rules(model))
	require.NoError(t, draw(t.TempDir()+"/drawing.html", holds, f.violations[0],
		[]*fault{struck(netReset, 3, 4)}))
}

// The faults since the grant of the one who has lost the lock decide, at its level.
func TestTheTableAdmits(t *testing.T) {
	for name, c := range map[string]struct {
		level  string
		fault  *fault
		admits bool
	}{
		"a takeover at the default level":  {levelDefault, struck(failoverTake, 2, 3), true},
		"a takeover at the level Replicas": {levelReplicas, struck(failoverTake, 2, 3), false},
		"a failover in good order":         {levelDefault, struck(failoverOrder, 2, 3), false},
		"a takeover long before the grant": {levelDefault, struck(failoverTake, -3, -2), false},
		"a takeover after they met":        {levelDefault, struck(failoverTake, 4.5, 5), false},
		"the key is deleted": {levelReplicas,
			&fault{Kind: keyDelete, Lock: "a", Start: second(2), End: second(2)}, true},
		"another key is deleted": {levelReplicas,
			&fault{Kind: keyDelete, Lock: "b", Start: second(2), End: second(2)}, false},
		"the server forgets":                         {levelReplicas, struck(serverForget, 2, 3), true},
		"the server restarts with all on disk":       {levelDefault, struck(serverRestart, 2, 3), false},
		"a takeover at the level Guard":              {levelGuard, struck(failoverTake, 2, 3), false},
		"the server forgets, at the level Guard":     {levelGuard, struck(serverForget, 2, 3), false},
		"a deposed primary goes on, with a guard":    {levelGuard, struck(failoverAsk, 2, 3), true},
		"a paused primary is deposed, with a guard":  {levelGuard, struck(failoverPause, 2, 3), true},
		"the lock is broken, with a guard":           {levelGuard, struck(lockBreak, 2, 3), true},
		"a Cluster's primary is cut off":             {levelDefault, struck(cutOff, 2, 3), true},
		"it is cut off, with a guard":                {levelGuard, struck(cutOff, 2, 3), false},
		"it is cut off, with all replicas":           {levelReplicas, struck(cutOff, 2, 3), false},
		"it does not hear of the other one":          {levelGuard, struck(cutHeir, 2, 3), true},
		"one of Sentinel is, with a guard":           {levelGuard, struck(sentinelOff, 2, 3), true},
		"one of Sentinel is, with all replicas":      {levelReplicas, struck(sentinelSide, 2, 3), false},
		"two are cut off from each other":            {levelDefault, struck(cutPair, 2, 3), false},
		"a slot moves, and no memory was lost":       {levelGuard, struck(slotMove, 2, 3), false},
		"a slot moves, and the guard is for another": {levelDefault, struck(slotMove, 2, 3), false},
		"a clock is stepped forward":                 {levelReplicas, struck(clockForward, 2, 2), true},
		"a clock is stepped forward, with a guard":   {levelGuard, struck(clockForward, 2, 2), true},
		"a clock is stepped back":                    {levelDefault, struck(clockBack, 2, 2), false},
		"a takeover that still lasts": {levelDefault,
			&fault{Kind: failoverTake, Start: second(2), End: forever}, true},
	} {
		t.Run(name, func(t *testing.T) {
			holds := []*hold{held("x", 1, c.level, 1, 5), held("y", 2, c.level, 4, 6)}
			f := checkExclusion(holds, []*fault{c.fault})
			require.True(t, f.lost[holds[0]])
			if !c.admits {
				require.Equal(t, "exclusion", rules(f.violations))
				return
			}
			require.Empty(t, f.violations)
			require.Equal(t, map[kind]int{c.fault.Kind: 1}, f.admitted)
			model, decided := checkModel(holds, f.lost)
			require.True(t, decided)
			require.Empty(t, model, "without the one who has lost it")
		})
	}
}

// No memory moves with a slot. So what its old server had forgotten within a guard is granted.
func TestASlotMovesAfterALossOfMemory(t *testing.T) {
	holds := []*hold{held("x", 1, levelGuard, 10, 15), held("y", 2, levelGuard, 14, 16)}
	move := struck(slotMove, 12, 13)
	ago := 13 - guard.Seconds()
	for name, c := range map[string]struct {
		before *fault
		rule   string
	}{
		"locks were lost":         {struck(failoverStale, ago, ago+1), ""},
		"that was before":         {struck(failoverStale, ago-4, ago-3), "exclusion"},
		"no locks were lost":      {struck(libReplace, ago, ago+1), "exclusion"},
		"they were lost after it": {struck(failoverStale, 13.5, 14), "exclusion"},
	} {
		f := checkExclusion(holds, []*fault{c.before, move})
		require.Equal(t, c.rule, rules(f.violations), name)
	}
}

func TestEntriesAndLossesAreCounted(t *testing.T) {
	holds := []*hold{held("x", 1, levelGuard, 1, 2), held("y", 2, levelGuard, 12, 13)}
	require.Equal(t, 1, entries(holds, second(10)))
	require.Equal(t, 2, entries(holds, 0), "there was no calm")
	require.Equal(t, 1, losses(holds, []*fault{struck(failoverKill, 1.5, 4),
		struck(failoverKill, 5, 6), struck(netReset, 1.5, 1.5)}))
}

// At the default level a deposed primary goes on granting, beside the holder at the new one.
func TestADeposedPrimaryGrants(t *testing.T) {
	for level, rule := range map[string]string{levelDefault: "", levelReplicas: "exclusion"} {
		holds := []*hold{held("x", 1, levelReplicas, 1, 5), held("y", 2, level, 4, 6)}
		f := checkExclusion(holds, []*fault{struck(failoverTake, 2, 4.5)})
		require.Equal(t, rule, rules(f.violations), level)
		require.Equal(t, level == levelDefault, f.lost[holds[1]])
		f = checkExclusion(holds, []*fault{struck(failoverTake, 0, 1)})
		require.Equal(t, "exclusion", rules(f.violations), "it was over")
	}
}

// The promotion by a cut is part of it: a primary that is none goes on, and memory is lost.
func TestWhatCutsDo(t *testing.T) {
	for k := range admits {
		require.Equal(t, k.isolates(), k.isCut() && splits[k], k)
		require.Equal(t, k.isolates(), k.isCut() && planned(k), k)
		require.Equal(t, strings.HasPrefix(string(k), "cut."), k.isCut(), k)
	}
}

func TestEveryKindIsInTheTable(t *testing.T) {
	all := append(append(append([]kind{failoverStray, clockWrong, clockForward, clockBack}, networkKinds...), clientKinds...),
		handKinds...)
	for _, s := range shapes {
		all = append(all, s.kinds...)
	}
	known := map[kind]bool{}
	for _, k := range all {
		require.Contains(t, admits, k)
		known[k] = true
	}
	require.Len(t, known, len(admits), "every kind of the table is chosen somewhere")
}

// One after the other is right, also if a look was taken long before the end was noticed.
func TestOneAfterTheOther(t *testing.T) {
	a, b := held("x", 1, levelDefault, 1, 2), held("y", 2, levelDefault, 3, 4)
	a.End = forever
	again := held("y", 2, levelDefault, 4.5, 5) // of one acquisition
	holds := []*hold{a, b, again}
	require.Empty(t, checkExclusion(holds, nil).violations)
	require.Empty(t, checkTokens(holds))
	model, decided := checkModel(holds, nil)
	require.True(t, decided)
	require.Empty(t, model)
}

func TestTokensMustGrow(t *testing.T) {
	require.Equal(t, "token", rules(checkTokens([]*hold{held("x", 7, levelDefault, 1, 2),
		held("y", 6, levelDefault, 3, 4)})))
	require.Equal(t, "token", rules(checkTokens([]*hold{held("x", 7, levelDefault, 1, 2),
		held("y", 7, levelDefault, 1.05, 2)})))
	waited := held("y", 6, levelDefault, 3, 4)
	waited.Start = second(0.5) // it may have been granted before
	holds := []*hold{held("x", 7, levelDefault, 1, 2), waited}
	require.Empty(t, checkTokens(holds))
	require.Equal(t, "exclusion", rules(checkExclusion(holds, nil).violations),
		"but then they have met")
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
	holds := []*hold{held("x", 1, levelDefault, 1, 2), held("y", 2, levelDefault, 12, 13)}
	wait := &call{Process: "z", Call: "acquire", Lock: "a", Start: second(1.5), End: second(14)}
	require.Equal(t, "stuck", rules(checkStuck([]*call{wait}, holds, second(0.5), idle)))
	require.Empty(t, checkStuck([]*call{wait}, holds, second(2.5), idle), "the storm was not over")
	require.Empty(t, checkStuck([]*call{wait}, holds, second(0.5), idle+guard),
		"nobody gets it so soon")
	wait.Start = second(9)
	require.Empty(t, checkStuck([]*call{wait}, holds, second(0.5), idle), "nobody waited for long")
}

func TestTheRegisterRefusesAndFindsLostUpdates(t *testing.T) {
	h := newHistory(nil)
	server, err := openRegister(h)
	require.NoError(t, err)
	defer func() { require.NoError(t, server.close()) }()
	r, err := dialRegister(server.addr())
	require.NoError(t, err)
	defer r.close()
	old, ok := r.read("a", 5)
	require.True(t, ok)
	newer, ok := r.read("a", 6)
	require.True(t, ok)
	require.False(t, r.write("a", 5, old+1), "an older token")
	require.True(t, r.write("a", 6, newer+1))
	require.Empty(t, h.troubles)
	require.True(t, r.write("a", 6, newer+1), "two with one token")
	require.Equal(t, "register", rules(h.troubles))
}

func TestWhatHasGrownIsFound(t *testing.T) {
	early := figures{Heap: 40 * mebibyte, Goroutines: 400, Connections: 60, Memory: 20 * mebibyte}
	grown := func(late figures) (names []string) {
		for _, g := range growths(early, late) {
			if g.grown() {
				names = append(names, g.name)
			}
		}
		return names
	}
	late := early
	late.Heap, late.Connections, late.Goroutines = 60*mebibyte, 80, 500
	require.Empty(t, grown(late))
	late = figures{Heap: 80 * mebibyte, Goroutines: 800, Connections: 120, Memory: 40 * mebibyte,
		Keys: 1}
	require.Len(t, grown(late), 5)
}

func TestWorkersStandAtAShutGate(t *testing.T) {
	g := newGate()
	g.pass(t.Context())
	g.shut()
	through := make(chan struct{})
	go func() { g.pass(t.Context()); close(through) }()
	require.Eventually(t, func() bool { return g.waiting() == 1 }, time.Second, time.Millisecond)
	g.reopen()
	<-through
	require.Zero(t, g.waiting())
}

// Who is killed after its first look was inside at a moment of that look.
func TestOneLookIsEnoughToMeet(t *testing.T) {
	killed := held("y", 2, levelGuard, 4, 4)
	killed.Last, killed.End = second(3.99), forever
	holds := []*hold{held("x", 1, levelGuard, 1, 5), killed}
	require.Equal(t, "exclusion", rules(checkExclusion(holds, nil).violations))
	f := checkExclusion(holds, []*fault{struck(keyDelete, 3, 3.1)})
	require.Empty(t, f.violations)
	model, _ := checkModel(holds, f.lost)
	require.Empty(t, model, "it is admitted, and not found again")
}
