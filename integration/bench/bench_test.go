package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRatiosAreThoseOfRounds(t *testing.T) {
	x := []values{{mRate: 100}, {mRate: 300}, {mRate: 0}, {mRate: 9}}
	y := []values{{mRate: 200}, {}, {mRate: 0}, {mRate: 0}}
	require.Equal(t, []float64{0.5, 1, endless}, ratios(x, y, mRate))
}

// Both are written from the same rounds: the rows that beat Holdfast, and how two commits compare.
func TestReportMarksWhatIsLost(t *testing.T) {
	c := cell{workload: "try", title: "1 goroutine"}
	r := report{cells: []cell{c}}
	for _, rate := range []float64{100, 300, 200} {
		r.add(c, "bsm", values{mRate: 2 * rate, mP99: 9})
		r.add(c, holdfastName, values{mRate: rate, mP99: 5})
		r.add(c, "v1", values{mRate: rate / 2, mP99: 5})
	}
	text := r.markdown()
	require.Contains(t, text, "| try | 1 goroutine | bsm | per second | 2 [2–2] |\n")
	require.Contains(t, text, "\n| bsm ▲ | **400 [200–600]** | – | 9 [9–9] |")
	require.Contains(t, text, "\n| holdfast | 200 [100–300] | – | 5 [5–5] |")
	require.NotContains(t, text, "| v1 ▲ |")
	table := r.ratioTable("v1")
	require.Contains(t, table, "| try | 1 goroutine | per second | 200 | 100 | 2 [2–2] |\n")
	require.Contains(t, table, "| try | 1 goroutine | wait p99 µs | 5 | 5 | 1 [1–1] |\n")
}

func TestEveryCellHasItsSection(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cells() {
		for _, m := range c.columns() {
			require.NotEmpty(t, labels[m], m)
		}
		seen[c.workload] = true
	}
	require.Len(t, seen, len(sections))
}

func TestAgainstNoCommit(t *testing.T) {
	_, err := buildWith(t.Context(), "no-such-commit", t.TempDir())
	require.ErrorContains(t, err, "no-such-commit")
}

func TestFairness(t *testing.T) {
	for _, c := range []struct {
		served []int64
		ratio  float64
		known  bool
	}{
		{[]int64{20, 30}, 1.5, true},
		{[]int64{0, 30}, endless, true},
		{[]int64{1, 2}, 0, false}, // too few turns to tell
		{[]int64{100}, 0, false},
	} {
		ratio, known := fairness(c.served)
		require.Equal(t, c.known, known, c.served)
		require.Equal(t, c.ratio, ratio, c.served)
	}
}

func TestSpread(t *testing.T) {
	s, known := spreadOf([]float64{3, 1, 2, endless})
	require.True(t, known)
	require.Equal(t, spread{2.5, 1, endless}, s)
	require.Equal(t, "2.50 [1–∞]", s.String())
	_, known = spreadOf(nil)
	require.False(t, known)
}

func TestGuardFindsABrokenLock(t *testing.T) {
	g := &guard{}
	g.enter()
	g.inside.Add(-1)
	require.NoError(t, g.check(1))
	require.Error(t, g.check(2), "an increment was lost")
	g.enter()
	g.enter()
	require.Error(t, g.check(3), "two were inside")
}

func TestAccount(t *testing.T) {
	a := account{commands: map[string]spent{}}
	require.NoError(t, a.parse("# CPU\r\nused_cpu_sys:0.25\r\nused_cpu_user:1.5\r\nused_cpu_user_children:9\r\n\r\n# Commandstats\r\n"+
		"cmdstat_fcall:calls=12,usec=34,usec_per_call=2.8\r\ncmdstat_client|setinfo:calls=2,usec=1\r\ncmdstat_hset:calls=7,usec=3\r\n"))
	require.Equal(t, 1750*time.Millisecond, a.server)
	before := account{commands: map[string]spent{"fcall": {2, 4}}}
	r := rival{Sends: []string{"fcall"}}
	require.Equal(t, spent{10, 30}, a.sub(before).by(r))
}

func TestShow(t *testing.T) {
	for x, want := range map[float64]string{1234567.8: "1,234,568", 123: "123", 12.34: "12.3", 1.234: "1.23", 0.001: "0.001", -1234: "-1,234", endless: "∞"} {
		require.Equal(t, want, show(x))
	}
}
