// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Both are written from the same rounds: the rows that beat Holdfast, and how two commits compare.
func TestReportMarksWhatIsLost(t *testing.T) {
	c := cell{workload: "try", title: "1 goroutine"}
	r := report{cells: []cell{c}, servers: []string{"redis 7"}}
	for _, rate := range []float64{100, 300, 200} {
		r.add(c, "bsm", values{mRate: 2 * rate, mP99: 9})
		r.add(c, holdfastName, values{mRate: rate, mP99: 5})
		r.add(c, "v1", values{mRate: rate / 2, mP99: 5})
	}
	text := r.markdown()
	require.Contains(t, text, "| tries on a held lock, 1 goroutine | redis 7 | bsm | per second | 2 [2–2] |\n")
	require.Contains(t, text, "\n| bsm ▲ | redis 7 | **400 [200–600]** | 0.50 [0.50–0.50] | 9 [9–9] |")
	require.Contains(t, text, "\n| holdfast | redis 7 | 200 [100–300] | – | 5 [5–5] |")
	require.NotContains(t, text, "| v1 ▲ |")
	require.Contains(t, text, "| tries on a held lock, 1 goroutine | 200 | **400** bsm |\n")
	table := r.ratioTable("v1")
	require.Contains(t, table, "| tries on a held lock, 1 goroutine | per second | 200 | 100 | 2 [2–2] |\n")
	require.Contains(t, table, "| tries on a held lock, 1 goroutine | wait p99 µs | 5 | 5 | 1 [1–1] |\n")
}

// What the README's table has is out of the report that lies in docs.
func TestREADMEHasRowsOfTheReport(t *testing.T) {
	report, err := os.ReadFile("../../docs/benchmark.md")
	require.NoError(t, err)
	_, glance, _ := strings.Cut(string(report), glanceTitle)
	glance, _, _ = strings.Cut(glance, "\n## ")
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(readme), "\n| per second, ")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	for _, row := range strings.Split(table, "\n")[1:] {
		require.Contains(t, glance, row+"\n")
	}
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

func TestGuardFindsABrokenLock(t *testing.T) {
	g := &guard{most: 1}
	g.enter(1)
	g.inside.Add(-1)
	require.NoError(t, g.check(1))
	require.Error(t, g.check(2), "an increment was lost")
	g.enter(1)
	g.enter(1)
	require.Error(t, g.check(3), "two were inside")
}

func TestGrowthHasTheFactorOfEachStep(t *testing.T) {
	r := report{servers: []string{"redis 7"}}
	for i, title := range []string{"10", "100", "1,000"} {
		c := cell{workload: "growth", group: "held", title: title}
		r.cells = append(r.cells, c)
		r.add(c, holdfastName, values{mServerCPU: 8 / float64(int(1)<<i)})
	}
	text := r.markdown()
	for _, row := range []string{"\n| 10 | redis 7 | 8 |", "\n| 100 | redis 7 | 4 (×0.50) |", "\n| 1,000 | redis 7 | 2 (×0.50) |"} {
		require.Contains(t, text, row)
	}
}
