package locks

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// The line is as the server serves it: over several pages, and over gaps, single ones and runs.
func TestTheLineIsInOrder(t *testing.T) {
	d := server.Single(t, server.Owned())
	d.Load(t)
	ctx := context.Background()
	option := d.ClientOption()
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	const key, all = "lock:busy", 2*page + 100
	call := func(function string, args ...string) {
		t.Helper()
		fcall := redis.B().Fcall().Function("holdfast_" + function).Numkeys(1).Key(key).Arg(args...).Build()
		require.NoError(t, redis.Do(ctx, fcall).Error())
	}
	call("acquire", "holder", "600000")
	for n := range all {
		call("wait", "waiter "+strconv.Itoa(n), "600000", "")
	}
	// who leaves: the first ones, single ones, runs (one over the edge of a page), the last ones
	leaves := func(n int) bool {
		return n < 3 || n%50 == 7 || n > 100 && n < 140 || n > page-20 && n < page+20 || n > all-5
	}
	var want []string
	for n := range all {
		if leaves(n) {
			call("leave", "waiter "+strconv.Itoa(n))
		} else {
			want = append(want, fmt.Sprintf("waiter %d", n))
		}
	}
	view, err := Open(redis, "lock:")
	require.NoError(t, err)
	t.Cleanup(view.Close)
	for _, limit := range []int{0, 1, 70, page, len(want), all} {
		line, err := view.Line(ctx, "busy", limit)
		require.NoError(t, err)
		require.Equal(t, len(want), line.Total)
		var got []string
		for i, w := range line.Waiters {
			got = append(got, w.Owner)
			require.Equal(t, i+1, w.Position)
			require.Equal(t, Polling, w.Hears)
			require.EqualValues(t, 600000, w.LeaseMS)
		}
		expected := want
		if limit > 0 {
			expected = want[:min(limit, len(want))]
		}
		require.Equal(t, expected, got)
	}
	none, err := view.Line(ctx, "nobody", 0)
	require.NoError(t, err)
	require.Zero(t, none)
}

// Whoever may write the key may write anything into it.
func TestHostileEntries(t *testing.T) {
	for _, entry := range []string{"", "1", "1 1 1 0 0 ", "1 1 1 5 0 abc", "1 1 1 0 3 abc", "1 1 1 -1 0 abc", "1 1 1 0 -1 abc",
		"a 1 1 0 0 abc", "1 1 1 9223372036854775807 9223372036854775807 abc", "<3", "1 1 1 0 99999999999999999999 abc"} {
		_, ok := parseWaiter(entry, time.Now())
		require.False(t, ok, entry)
	}
	w, ok := parseWaiter("30000 1 5 3 2 h:1chthe owner", time.UnixMilli(7))
	require.True(t, ok)
	require.Equal(t, Waiter{Who: Who{Owner: "the owner"}, LeaseMS: 30000, AskedMS: 2, channel: "ch"}, w)
}
