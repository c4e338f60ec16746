// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// The line is as the server serves it: over several pages, and over gaps, single ones and runs.
func TestTheLineIsInOrder(t *testing.T) {
	ctx, view, call := loaded(t)
	const key, all = "lock:busy", 2*page + 100
	call("acquire", key, "holder", "600000")
	for n := range all {
		call("wait", key, "waiter "+strconv.Itoa(n), "600000")
	}
	// who leaves: the first ones, single ones, runs (one over the edge of a page), the last ones
	leaves := func(n int) bool {
		return n < 3 || n%50 == 7 || n > 100 && n < 140 || n > page-20 && n < page+20 || n > all-5
	}
	var want []string
	for n := range all {
		if leaves(n) {
			call("leave", key, "waiter "+strconv.Itoa(n))
		} else {
			want = append(want, fmt.Sprintf("waiter %d", n))
		}
	}
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

// connected is a client of a server of its own.
func connected(t *testing.T) rueidis.Client {
	t.Helper()
	d := server.Single(t, server.Owned())
	d.Load(t)
	option := d.ClientOption()
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	return redis
}

// loaded is a view of a server of its own, and how functions are called there.
func loaded(t *testing.T) (ctx context.Context, view *View, call func(function, key string, args ...string)) {
	t.Helper()
	redis := connected(t)
	view, err := Open(redis, "lock:")
	require.NoError(t, err)
	t.Cleanup(view.Close)
	return t.Context(), view, func(function, key string, args ...string) {
		t.Helper()
		fcall := redis.B().Fcall().Function("holdfast_" + function).Numkeys(1).Key(key).Arg(args...).Build()
		require.NoError(t, redis.Do(t.Context(), fcall).Error())
	}
}

// Whoever may write the key may write anything into it.
func TestHostileEntries(t *testing.T) {
	pack := func(texts string, lengths [2]uint16, numbers ...float64) string {
		var packed []byte
		for _, n := range numbers {
			packed = binary.LittleEndian.AppendUint64(packed, math.Float64bits(n))
		}
		for _, n := range lengths {
			packed = binary.LittleEndian.AppendUint16(packed, n)
		}
		return string(packed) + texts
	}
	for _, entry := range []string{"", "1", "<3", ">7", pack("", [2]uint16{}, 1, 1, 1, 0), pack("abc", [2]uint16{5, 0}, 1, 1, 1, 0),
		pack("abc", [2]uint16{0, 3}, 1, 1, 1, 0), pack("abc", [2]uint16{65535, 65535}, 1, 1, 1, 0),
		pack("abc", [2]uint16{}, math.NaN(), 1, 1, 0), pack("abc", [2]uint16{}, 1, 1, math.Inf(1), 0),
		pack("abc", [2]uint16{}, -1, 1, 1, 0), pack("abc", [2]uint16{}, 1, -1002, 1, 0)} {
		_, ok := parseWaiter(entry, time.Now())
		require.False(t, ok, "%q", entry)
	}
	w, ok := parseWaiter(pack("h:1chthe owner", [2]uint16{3, 2}, 30000, 1, 5, 0), time.UnixMilli(7))
	require.True(t, ok)
	require.Equal(t, Waiter{Who: Who{Owner: "the owner"}, LeaseMS: 30000, AskedMS: 2, channel: "ch", Wants: "alone"}, w)
	for tokens, wants := range map[float64]string{-1: "limit 1", -1000: "limit 1000", -1001: "shared"} {
		w, ok := parseWaiter(pack("abc", [2]uint16{}, 1, tokens, 1, 0), time.Now())
		require.True(t, ok)
		require.Equal(t, wants, w.Wants)
	}

	for _, asked := range []string{"zzzzzzzzzz", "-zzzzzzzzz"} { // a year that JSON does not have
		w, ok = parseWaiter(pack("h:1:0123456789abcdef:"+asked, [2]uint16{}, 1, 1, 1, 0), time.Now())
		require.True(t, ok)
		_, err := json.Marshal(w)
		require.NoError(t, err)
	}

	redis := connected(t)
	endless := pack("", [2]uint16{}, 0, 1<<52, 1<<52, 0, 0, 0)[:lineNumbers*doubleBytes]
	require.NoError(t, redis.Do(t.Context(), redis.B().Hset().Key("lock:endless").FieldValue().FieldValue("state", endless).Build()).Error())
	endlessLine, err := readLine(t.Context(), redis, "lock:endless", 0, time.Now())
	require.NoError(t, err)
	require.Empty(t, endlessLine.Waiters)

	line := pack("", [2]uint16{}, 0, 1, 1, 0, 0, 0)[:lineNumbers*doubleBytes]
	_, ok = parseState(line)
	require.True(t, ok)
	for _, state := range []string{"0 1 1 0 0 0", line[:40], line + "more", pack("", [2]uint16{}, 2, 1, 1, 0, 0, 0)[:48],
		line + pack("", [2]uint16{}, 0, 0, 0, 0, 1, 0, 0, 600)[:64]} {
		_, ok = parseState(state)
		require.False(t, ok, "%q", state)
	}
}

// What the key of a lock promises is shown: an interval, with a holder and without, and a break.
func TestWhatAKeyKeeps(t *testing.T) {
	ctx, view, call := loaded(t)
	look := func(held, kept bool, owner string) Lock {
		t.Helper()
		l, err := view.Lock(ctx, "job")
		require.NoError(t, err)
		require.Equal(t, []any{held, kept, owner}, []any{l.Held, l.Kept(), l.Owner})
		return l
	}
	names := func(f Filter) (names []string) {
		t.Helper()
		list, err := view.List(ctx, f, nil)
		require.NoError(t, err)
		for _, l := range list.Locks {
			names = append(names, l.Name)
		}
		return names
	}
	call("acquire", "lock:job", "runner", "60000", "MINHOLD", "600000")
	held := look(true, false, "runner")
	require.Greater(t, time.Until(*held.KeptUntil), 9*time.Minute)
	require.Nil(t, held.Broken)
	call("release", "lock:job", "runner")
	kept := look(false, true, "runner")
	require.Equal(t, held.KeptUntil, kept.KeptUntil)
	require.Greater(t, kept.Remaining(), 9*time.Minute)
	require.Equal(t, []string{"job"}, names(Filter{}))
	require.Empty(t, names(Filter{Held: true}))

	broken, err := view.Break(ctx, kept, "run it again", false)
	require.NoError(t, err)
	require.NotNil(t, broken.Lost)
	require.Empty(t, names(Filter{}))
	call("acquire", "lock:job", "next", "60000")
	held = look(true, false, "next")
	require.Nil(t, held.KeptUntil)

	broken, err = view.Break(ctx, kept, "it is another's", false)
	require.NoError(t, err)
	require.Nil(t, broken.Lost)
	require.True(t, broken.Next.Held)
	broken, err = view.Break(ctx, held, "it\nhangs", false)
	require.NoError(t, err)
	require.Equal(t, held.Token, broken.Lost.Token)
	free := look(false, false, "")
	require.Equal(t, Who{Owner: "next"}, free.Broken.Who)
	require.Equal(t, held.Token, free.Broken.Token)
	require.Contains(t, free.Broken.Reason, ": it hangs")
	require.Greater(t, time.Until(free.Broken.Until), 50*time.Second)
	_, err = view.Break(ctx, free, "", true)
	require.NoError(t, err)
	require.Nil(t, look(false, false, "").Broken)
}

func TestAReasonIsCutBetweenCharacters(t *testing.T) {
	for _, begin := range []string{"", "x"} {
		text := signed(begin + strings.Repeat("é", functions.MaxBytes))
		require.True(t, utf8.ValidString(text), text)
		require.GreaterOrEqual(t, len(text), functions.MaxBytes-1)
	}
}
