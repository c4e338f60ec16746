package main

import (
	"bufio"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramQuantiles(t *testing.T) {
	h := newHistogram()
	for i := 1; i <= 1000; i++ {
		h.add(time.Duration(i) * time.Microsecond)
	}
	require.InEpsilon(t, 500, h.quantile(0.5), 0.02)
	require.InEpsilon(t, 990, h.quantile(0.99), 0.02)
	require.True(t, math.IsNaN(newHistogram().quantile(0.5)))
}

func TestHistogramBucketsHoldTheirMiddle(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 63, 64, 65, 127, 128, 12345, time.Second, time.Hour, math.MaxInt64} {
		i := bucketOf(d)
		require.Less(t, i, buckets)
		require.Equal(t, i, bucketOf(middleOf(i)), d)
	}
	require.Equal(t, bucketOf(0), bucketOf(-time.Second))
}

func TestHistogramPackedMergesAsItWas(t *testing.T) {
	h := newHistogram()
	h.add(time.Millisecond)
	h.add(time.Second)
	total := newHistogram()
	total.merge(h.pack())
	require.EqualValues(t, 2, total.N)
	require.InEpsilon(t, 1e6, total.quantile(1), 0.02)
}

func TestFairness(t *testing.T) {
	require.Equal(t, 1.5, fairness([]int64{20, 30}))
	require.True(t, math.IsInf(fairness([]int64{0, 30}), 1))
	require.True(t, math.IsNaN(fairness([]int64{1, 2})), "too few turns to tell")
	require.True(t, math.IsNaN(fairness([]int64{100})))
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{3, math.NaN(), 1, 2}))
	require.Equal(t, 1.5, median([]float64{2, 1}))
	require.True(t, math.IsNaN(median(nil)))
}

func TestGuardFindsABrokenLock(t *testing.T) {
	g, err := newGuard()
	require.NoError(t, err)
	defer g.remove()
	other, err := openGuard(g.file) // as another process would
	require.NoError(t, err)
	defer other.close()

	g.enter()
	g.leave()
	require.NoError(t, other.check(1))
	require.Error(t, g.check(2), "an increment was lost")
	g.enter()
	other.enter()
	require.Error(t, g.check(3), "two were inside")
}

func TestMonitored(t *testing.T) {
	const said = `+1.0 [0 127.0.0.1:1] "HELLO" "3"
+1.1 [0 127.0.0.1:1] "set" "a \"b\"" "\x00\xff" "NX"
+1.2 [0 lua] "set" "inner" "x"
+1.3 [0 127.0.0.1:2] "ECHO" "the-end"
`
	got, err := monitored(bufio.NewReader(strings.NewReader(said)), rival{Sends: []string{"set"}}, "the-end")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"set", `a "b"`, "\x00\xff", "NX"}}, got)
}

func TestAccountSplit(t *testing.T) {
	a := account{Calls: map[string]int64{"fcall": 10, "hset": 7, "client|setinfo": 3, "info": 2, "config|get": 1}}
	sent, inside := a.split(rival{Sends: []string{"fcall"}})
	require.EqualValues(t, 10, sent)
	require.EqualValues(t, 7, inside)
}

func TestAccountParse(t *testing.T) {
	a := account{Calls: map[string]int64{}}
	require.NoError(t, a.parse("# CPU\r\nused_cpu_sys:0.25\r\nused_cpu_user:1.5\r\nused_cpu_user_children:9\r\n\r\n# Commandstats\r\n"+
		"cmdstat_fcall:calls=12,usec=34,usec_per_call=2.8\r\ncmdstat_client|setinfo:calls=2,usec=1\r\n"))
	require.Equal(t, account{CPU: 1750 * time.Millisecond, Calls: map[string]int64{"fcall": 12, "client|setinfo": 2}, Nodes: []int64{14}}, a)
}

func TestShow(t *testing.T) {
	for x, want := range map[float64]string{1234567.8: "1,234,568", 123: "123", 12.34: "12.3", 1.234: "1.23", 0.001: "0.001", -1234: "-1,234"} {
		require.Equal(t, want, show(x, true))
	}
	require.Equal(t, "–", show(math.NaN(), true))
}
