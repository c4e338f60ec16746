// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	guard     = 8 * time.Second
	aftermath = time.Second
)

// second is a stamp in seconds.
func second(s float64) Stamp { return Stamp(s * float64(time.Second)) }

// held is a hold from one second to another.
func held(owner string, token int64, level Level, from, to float64) *Hold {
	return &Hold{Who: owner, Lock: "a", Level: level, Owner: owner, Token: token,
		Start: second(from - 0.1), Enter: second(from), Last: second(to), End: second(to + 0.1)}
}

func struck(c Cause, from, to float64) *Fault {
	return &Fault{Name: string(c), Cause: c, Start: second(from), End: second(to)}
}

func judge(faults ...*Fault) *Judge {
	return &Judge{Faults: faults, Guard: guard, Aftermath: aftermath}
}

// rules are those of violations.
func rules(list []Violation) (names []string) {
	for _, v := range list {
		names = append(names, v.Rule)
	}
	return names
}

// The faults since the grant of the one who has lost the lock decide, at its level. What else each cause does at each
// level is shown by TestTheTableIsThePage.
func TestTheTableAdmits(t *testing.T) {
	of := func(f Fault, lock, owner string) *Fault {
		f.Lock, f.Owner = lock, owner
		return &f
	}
	for name, c := range map[string]struct {
		level  Level
		fault  *Fault
		admits bool
	}{
		"a takeover at the default level":         {Default, struck(Unreplicated, 2, 3), true},
		"a takeover long before the grant":        {Default, struck(Unreplicated, -3, -2), false},
		"a takeover after they met":               {Default, struck(Unreplicated, 4.5, 5), false},
		"a takeover that still lasts":             {Default, &Fault{Cause: Unreplicated, Start: second(2), End: Forever}, true},
		"the key is deleted":                      {Replicas, of(*struck(Deleted, 2, 2), "a", ""), true},
		"another key is deleted":                  {Replicas, of(*struck(Deleted, 2, 2), "b", ""), false},
		"the first one's lease is deleted":        {Replicas, of(*struck(Deleted, 0, 0), "a", "x"), true},
		"another one's is":                        {Replicas, of(*struck(Deleted, 2, 2), "a", "z"), false},
		"a deposed primary goes on, with a guard": {Guarded, struck(Deposed, 2, 3), false},
		"a slot moves, and no memory was lost":    {Guarded, struck(Moved, 2, 3), false},
		"a clock is stepped back":                 {Default, struck(Back, 2, 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			holds := []*Hold{held("x", 1, c.level, 1, 5), held("y", 2, c.level, 4, 6)}
			f := judge(c.fault).Exclusion(holds)
			require.Equal(t, map[*Hold]bool{holds[0]: true}, f.Lost)
			if c.admits {
				require.Empty(t, f.Violations)
				require.Equal(t, map[string]int{c.fault.Name: 1}, f.Admitted)
				return
			}
			require.Equal(t, []string{"exclusion"}, rules(f.Violations))
		})
	}
}

// No memory moves with a slot. So what its old server had forgotten within a guard is granted.
func TestASlotMovesAfterALossOfMemory(t *testing.T) {
	holds := []*Hold{held("x", 1, Guarded, 10, 15), held("y", 2, Guarded, 14, 16)}
	ago := 13 - guard.Seconds()
	for name, c := range map[string]struct {
		before *Fault
		rules  []string
	}{
		"locks were lost":         {struck(Unreplicated, ago, ago+1), nil},
		"that was before":         {struck(Unreplicated, ago-4, ago-3), []string{"exclusion"}},
		"no locks were lost":      {struck(None, ago, ago+1), []string{"exclusion"}},
		"they were lost after it": {struck(Unreplicated, 13.5, 14), []string{"exclusion"}},
	} {
		f := judge(c.before, struck(Moved, 12, 13)).Exclusion(holds)
		require.Equal(t, c.rules, rules(f.Violations), name)
	}
}

// At the default level a deposed primary goes on granting, beside the holder at the new one.
func TestADeposedPrimaryGrants(t *testing.T) {
	for level, admits := range map[Level]bool{Default: true, Replicas: false} {
		holds := []*Hold{held("x", 1, Replicas, 1, 5), held("y", 2, level, 4, 6)}
		f := judge(struck(Unreplicated, 2, 4.5)).Exclusion(holds)
		require.Equal(t, admits, len(f.Violations) == 0, level)
		require.Equal(t, admits, f.Lost[holds[1]])
		f = judge(struck(Unreplicated, 0, 1)).Exclusion(holds)
		require.Len(t, f.Violations, 1, "it was over")
	}
}

// Where clocks differ the newer one can be the one with the lower token.
func TestWhoHasLostItWhereClocksDiffer(t *testing.T) {
	x, y := held("x", 7, Default, 1, 5), held("y", 6, Default, 4, 6)
	fault := struck(Forgotten, 2, 2)
	fault.Owner = "x"
	j := judge(fault)
	_, why := j.Meet(x, y, second(4))
	require.Nil(t, why)
	j.Exact = true
	lost, why := j.Meet(x, y, second(4))
	require.Equal(t, fault, why)
	require.Equal(t, x, lost)
}

// Whom a server has told that the lock is another's knows, and what it enters with later is a new grant. One
// who shares the owner string may not be the one who was told.
func TestWhoWasTold(t *testing.T) {
	fault := struck(Deleted, 2, 2)
	fault.Owner = "x"
	h := held("x", 5, Default, 4, 6)
	require.NotNil(t, judge(fault).Lost(h, second(5), Second), "its lease of before was passed on in memory")
	h.Told = second(3)
	require.Nil(t, judge(fault).Lost(h, second(5), Second))
	h.Shared = true
	require.Nil(t, judge(fault).Lost(h, second(5), Second), "it was granted later")
	h.Start = second(1.5)
	require.NotNil(t, judge(fault).Lost(h, second(5), Second))
}

// With a guard a lock can be lost, but nobody is in beside its holder.
func TestALockIsLostAndNobodyElsesYet(t *testing.T) {
	h := held("x", 1, Guarded, 1, 5)
	j := judge(struck(Forgotten, 2, 3))
	require.NotNil(t, j.Lost(h, second(4), Loss))
	require.Nil(t, j.Lost(h, second(4), Second))
}

// Who may be inside beside whom: not who must be alone, nobody of another kind, no two in one slot, and
// no more than a limited one's own limit at its entry. Faults excuse each of these.
func TestCrowds(t *testing.T) {
	type who struct {
		token       int64
		limit, slot int
	}
	for name, c := range map[string]struct {
		inside []who
		rules  []string
	}{
		"three share":                              {[]who{{1, Sharing, 1}, {2, Sharing, 2}, {3, Sharing, 3}}, nil},
		"two share a slot":                         {[]who{{1, Sharing, 1}, {2, Sharing, 1}}, []string{"exclusion"}},
		"one shares beside one alone":              {[]who{{1, 0, 0}, {2, Sharing, 1}}, []string{"exclusion"}},
		"one alone beside one limited":             {[]who{{1, 2, 1}, {2, 0, 0}}, []string{"exclusion"}},
		"one limited beside one who shares":        {[]who{{1, Sharing, 1}, {2, 9, 2}}, []string{"exclusion"}},
		"two of two":                               {[]who{{1, 2, 1}, {2, 2, 2}}, nil},
		"three of two":                             {[]who{{1, 2, 1}, {2, 2, 2}, {3, 2, 3}}, []string{"limit"}},
		"the third of three beside two of two":     {[]who{{1, 2, 1}, {2, 2, 2}, {3, 3, 3}}, nil},
		"one of one beside one of three":           {[]who{{1, 3, 1}, {2, 1, 2}}, []string{"limit"}},
		"it is seen before who was granted before": {[]who{{2, 1, 2}, {1, 3, 1}}, []string{"limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			var holds []*Hold
			for i, w := range c.inside {
				h := held(string(rune('x'+i)), w.token, Default, 1+float64(i), 9)
				h.Limit, h.Slot = w.limit, w.slot
				holds = append(holds, h)
			}
			require.Equal(t, c.rules, rules(judge().Exclusion(holds).Violations))
			require.Empty(t, judge(struck(Deleted, 0, 9)).Exclusion(holds).Violations)
		})
	}
}

// One after the other is right, also if a look was taken long before the end was noticed.
func TestOneAfterTheOther(t *testing.T) {
	a, b := held("x", 1, Default, 1, 2), held("y", 2, Default, 3, 4)
	a.End = Forever
	again := held("y", 2, Default, 4.5, 5) // of one acquisition
	holds := []*Hold{a, b, again}
	require.Empty(t, judge().Exclusion(holds).Violations)
	require.Empty(t, Tokens(holds))
}

func TestTokensMustGrow(t *testing.T) {
	wrong := []string{"token"}
	require.Equal(t, wrong, rules(Tokens([]*Hold{held("x", 7, Default, 1, 2), held("y", 6, Default, 3, 4)})))
	require.Equal(t, wrong, rules(Tokens([]*Hold{held("x", 7, Default, 1, 2), held("y", 7, Default, 1.05, 2)})))
	waited := held("y", 6, Default, 3, 4)
	waited.Start = second(0.5) // it may have been granted before
	holds := []*Hold{held("x", 7, Default, 1, 2), waited}
	require.Empty(t, Tokens(holds))
	require.Equal(t, []string{"exclusion"}, rules(judge().Exclusion(holds).Violations), "but then they have met")
}

// Who is killed after its first look was inside at a moment of that look.
func TestOneLookIsEnoughToMeet(t *testing.T) {
	killed := held("y", 2, Guarded, 4, 4)
	killed.Last, killed.End = second(3.99), Forever
	holds := []*Hold{held("x", 1, Guarded, 1, 5), killed}
	require.Len(t, judge().Exclusion(holds).Violations, 1)
	require.Empty(t, judge(struck(Deleted, 3, 3.1)).Exclusion(holds).Violations)
}

// Who is beside one of another slot was not inside beside the one who had its own slot in between.
func TestASlotWasGivenToAnotherInBetween(t *testing.T) {
	of := func(owner string, token int64, slot int, from, to float64) *Hold {
		h := held(owner, token, Default, from, to)
		h.Limit, h.Slot = 2, slot
		return h
	}
	late := of("x", 1, 1, 8, 9)
	late.Start = second(0)
	next, beside := of("y", 2, 1, 2, 3), of("z", 3, 2, 2, 3)
	require.Len(t, judge().Exclusion([]*Hold{next, late}).Violations, 1)
	require.Len(t, judge().Exclusion([]*Hold{next, beside, late}).Violations, 1)
}

// One owner passes a lock on in memory, with the next token: two of them exclude each other as others do.
func TestTwoOfOneOwner(t *testing.T) {
	a, b := held("x", 1, Default, 1, 5), held("x", 2, Default, 4, 6)
	require.Len(t, judge().Exclusion([]*Hold{a, b}).Violations, 1)
	a.Shared, b.Shared = true, true
	require.Empty(t, judge().Exclusion([]*Hold{a, b}).Violations)
}

// The one with the newer token has lost it only by a fault that splits, and that was before it entered.
func TestTheNewerOneHasNotLostIt(t *testing.T) {
	x, y := held("x", 1, Replicas, 1, 5), held("y", 2, Default, 4, 6)
	require.Len(t, judge(struck(Forgotten, 3, 3)).Exclusion([]*Hold{held("x", 1, Quorum, 1, 5), y}).Violations, 1)
	j := judge(struck(Unreplicated, 4.5, 5))
	_, why := j.Meet(x, y, second(4.8))
	require.Nil(t, why)
}

// The highest of all tokens so far counts, and not the last one.
func TestTheHighestTokenCounts(t *testing.T) {
	x, y, z := held("x", 7, Default, 1, 2), held("y", 5, Default, 3, 4), held("z", 6, Default, 5, 6)
	y.Start, z.Start = second(0.5), second(4.5)
	require.Equal(t, []string{"token"}, rules(Tokens([]*Hold{x, y, z})))
	y.Start, z.Start = second(0), second(0)
	y.Token, z.Token = 9, 8
	require.Len(t, judge().Exclusion([]*Hold{x, y, z}).Violations, 1)
}
