// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/seeded"
)

// Each of these is broken, and the round must say so, in one of these rules. It is a real one, on
// real servers, that is short.
func TestDefectsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		shape, profile string
		storm          time.Duration
		only           string   // kinds of faults
		change         []string // of the library: old, new, ...
		defect         string
		rules          []string
	}{
		"a release does not look at the owner": {shape: "durable", profile: profileStrict, storm: 8 * time.Second,
			change: []string{
				"if v[1] == args[1] and (#args == 1 or plain_used) then",
				"if v[1] and (#args == 1 or plain_used) then",
				"  local mine = holder(lock, us, owner)\n  if not mine or hold and lock.holds == 0 then\n    commit", "  local mine = lock.ends > 0 and lock\n  if not mine or hold and lock.holds == 0 then\n    commit"},
			rules: []string{"exclusion"}},
		"tokens are counted in memory, and a restart forgets it": {shape: "memory",
			profile: profileAll, storm: 8 * time.Second,
			change: []string{"last = us > last and us or last + 1", "last = last + 1"},
			rules:  []string{"token"}},
		"tokens are counted in memory, and a failover forgets it": {shape: "cluster",
			profile: profileReplicas, storm: 12 * time.Second,
			change: []string{"last = us > last and us or last + 1", "last = last + 1"},
			rules:  []string{"token"}},
		"a server with a young memory grants guarded locks": {shape: "memory",
			profile: profileGuard, storm: 50 * time.Second,
			change: []string{
				"  return max(0, guard - ms(age(us)))\n", "  return 0\n"},
			rules: []string{"exclusion"}},
		// Sentinel takes ten to thirty seconds from a cut until all follow one again, and a cut counts
		// only if somebody got a lock in the two seconds before the promotion.
		"callers count on a primary that is cut off": {shape: "sentinel", profile: profileReplicas,
			storm: 80 * time.Second, only: "cut.off", defect: defectUnheard, rules: []string{"exclusion"}},
		"a server that comes back empty votes at once": {shape: "quorum",
			profile: profileGuard, storm: 50 * time.Second,
			change: []string{
				"  return max(0, guard - ms(age(us)))\n", "  return 0\n"},
			rules: []string{"exclusion"}},
		"a limit is one more": {shape: "durable", profile: profileStrict, storm: 8 * time.Second,
			change: []string{"lock.taken < min(w.limit, MAX_HOLDERS)", "lock.taken <= min(w.limit, MAX_HOLDERS)"},
			rules:  []string{"limit"}},
		"a lock is not passed on": {shape: "durable", profile: profileStrict, storm: 5 * time.Second,
			change: []string{
				"while lock.closed == 0 and has_line(lock) and lock.steps < STEPS do",
				"while false do"},
			rules: []string{"stuck"}},
		"a process leaves a goroutine": {shape: "memory", profile: profileStrict, storm: time.Second,
			defect: defectLeak, rules: []string{"leak"}},
	} {
		t.Run(name, func(t *testing.T) {
			source := seeded.Text(t, functions.Source, c.change...)
			if testing.Short() {
				t.Skip("it can be put in; make chaos-defects looks whether it is found")
			}
			r := &round{Shape: c.shape, Profile: c.profile, Seed: 1, Storm: c.storm,
				Only: c.only, Calm: 12 * time.Second, Defect: c.defect,
				out: t.TempDir(), source: source}
			res, err := r.run(t.Context())
			require.NoError(t, err)
			t.Log(res)
			found := strings.Fields(rules(res.violations))
			require.True(t, slices.ContainsFunc(c.rules,
				func(rule string) bool { return slices.Contains(found, rule) }),
				"want one of %v, found: %v", c.rules, found)
			info, err := os.Stat(res.kept)
			require.NoError(t, err)
			require.NotZero(t, info.Size())
		})
	}
}

// A soak finds what grows.
func TestASoakFindsGrowth(t *testing.T) {
	if testing.Short() {
		t.Skip("make chaos-defects plays it")
	}
	r := &round{Shape: "memory", Profile: profileStrict, Seed: 1, Storm: 10 * time.Second,
		Soak: true, Defect: defectHoard, out: t.TempDir()}
	res, err := r.run(t.Context())
	require.NoError(t, err)
	require.Contains(t, rules(res.violations), "growth")
	require.Contains(t, res.String(), "goroutines of the clients")
}
