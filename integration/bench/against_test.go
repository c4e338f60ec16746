package main

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRatiosAreThoseOfRounds(t *testing.T) {
	here, there, ratios := split([]pair{
		{values{mRate: 100}, values{mRate: 200}},
		{values{mRate: 300}, values{}},
		{values{mRate: 0}, values{mRate: 0}},
		{values{mRate: 9}, values{mRate: 0}},
	}, mRate)
	require.Equal(t, []float64{100, 0, 9}, here)
	require.Equal(t, []float64{200, 0, 0}, there)
	require.Equal(t, []float64{0.5, 1, math.Inf(1)}, ratios)
}

func TestTableOfRatios(t *testing.T) {
	work := workload{Name: "w", Title: "Work", Columns: []string{mAllocs, mRate, mBytes}, Cells: []cell{{Case: "some"}, {Case: "not measured"}}}
	d := duel{dir: "../old", workloads: []workload{work}, measured: map[where][]pair{
		{"w", "some", holdfastName}: {
			{values{mRate: 100, mAllocs: 3}, values{mRate: 200, mAllocs: 3}},
			{values{mRate: 300, mAllocs: 3}, values{mRate: 200, mAllocs: 3}},
		},
	}}
	require.Equal(t, `
## Work

| case | metric | here | ../old | ratio, min | median | max |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
| some | per second | 200 | 200 | 0.500 | 1.000 | 1.500 |
| some | allocs | 3 | 3 | 1.000 | 1.000 | 1.000 |
`, d.table())
}

func TestEveryWorkloadOfAComparisonHasRatios(t *testing.T) {
	picked, err := chosen(workloads(false), againstWorkloads, func(w workload) string { return w.Name })
	require.NoError(t, err)
	require.Len(t, picked, len(strings.Split(againstWorkloads, ",")))
	for _, w := range picked {
		require.NotEmpty(t, ratioMetrics(w), w.Name)
	}
}

func TestAgainstNoCheckout(t *testing.T) {
	dir := t.TempDir()
	_, err := buildWith(t.Context(), dir, t.TempDir())
	require.ErrorContains(t, err, dir+" is in no checkout of github.com/holdfast-go/holdfast")
	_, err = buildWith(t.Context(), "/no/such/folder", t.TempDir())
	require.ErrorContains(t, err, "/no/such/folder")
}
