package fcall

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReplies(t *testing.T) {
	for _, c := range []struct {
		values []any
		want   Reply
	}{
		{[]any{1, 77, 3000, 2, 5}, Reply{Yes: true, Fence: 77, Holds: 2, Block: 5}},
		{[]any{1, 2}, Reply{Yes: true, Holds: 2}},
		{[]any{0, 3000, "x", 4}, Reply{Remaining: 3 * time.Second, Holder: "x", Waiters: 4}},
		{[]any{0, 0, "", 4}, Reply{Waiters: 4}},
		{[]any{0, -1, "plain", 0}, Reply{Remaining: -time.Millisecond, Holder: "plain"}},
		{[]any{0, 9, "x", 4, 1700000000000, 76, 1}, Reply{Remaining: 9 * time.Millisecond, Holder: "x", Waiters: 4,
			ServerMS: 1700000000000, Fence: 76, Subscribers: 1}},
	} {
		got, err := decodeReply(reply(c.values...), nil)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%v", c.values)
	}
	s, err := decodeStanding(reply(1, "x", 2, 77, 3000, 4), nil)
	require.NoError(t, err)
	require.Equal(t, Standing{Held: true, Owner: "x", Holds: 2, Fence: 77, Remaining: 3 * time.Second, Waiters: 4}, s)
}

// A lease that no Duration can hold must not become one that is over: that would be asked about
// without a pause.
func TestALeaseOfCenturies(t *testing.T) {
	for _, ms := range []int{300 * 366 * 24 * 3600 * 1000, math.MaxInt64} {
		r, err := decodeReply(reply(0, ms, "x", 0), nil)
		require.NoError(t, err)
		require.Greater(t, r.Remaining, 50*365*24*time.Hour)
		require.Positive(t, r.Remaining+time.Millisecond+time.Second, "and more can be added")
	}
}

func TestRepliesOfAnotherContract(t *testing.T) {
	for _, values := range [][]any{
		{}, {2, "surprise"}, {"x"}, {nil}, {1}, {1, "x"}, {1, 77, 3000}, {1, 77, 3000, "x", 1}, {0}, {0, 3000}, {0, 3000, "x"},
		{0, "x", "x", 0}, {0, 3000, 7, 0}, {0, 3000, "x", 1, 2}, {[]any{1, 77, 3000, 2, 5}}, {0, 3000, errors.New("ERR no"), 1},
	} {
		_, err := decodeReply(reply(values...), nil)
		require.ErrorIs(t, err, ErrLibrary, "%v", values)
		_, err = decodeStanding(reply(values...), nil)
		require.ErrorIs(t, err, ErrLibrary, "%v", values)
	}
	already := errors.New("of the call")
	_, err := decodeReply(nil, already)
	require.Equal(t, already, err)
}

func at(values []any, i int) any {
	if i < len(values) {
		return values[i]
	}
	return nil
}

// FuzzReplies answers what no library would. In the script a digit makes an integer, a letter a
// string, '_' null, '-' an error and '[' an array.
func FuzzReplies(f *testing.F) {
	f.Add("11999", int64(30000), "holder")
	f.Add("0$$x1", int64(-1), "")
	f.Add("02x0", int64(math.MinInt64), "")
	f.Add("02x0", int64(math.MinInt64+1), "")
	f.Add("2020", int64(2), "")
	f.Add("0[_-", int64(math.MaxInt64), "\x00")
	f.Fuzz(func(t *testing.T, script string, n int64, text string) {
		values := make([]any, 0, len(script))
		for _, c := range script[:min(len(script), 12)] {
			switch {
			case c == '0' || c == '1':
				values = append(values, int(c-'0'))
			case c >= '2' && c <= '9':
				values = append(values, int(n)/int(c-'1'))
			case c == '_':
				values = append(values, nil)
			case c == '-':
				values = append(values, errors.New(strings.ReplaceAll(text, "\n", " ")))
			case c == '[':
				values = append(values, []any{text, int(n)})
			default:
				values = append(values, text)
			}
		}
		all := reply(values...)
		r, err := decodeReply(all, nil)
		s, err2 := decodeStanding(all, nil)
		left, err3 := decodeLeft(all, nil)
		fences, err4 := decodeFences(all, max(len(all)-2, 1))
		for _, err := range []error{err, err2, err3, err4} {
			if err != nil && !errors.Is(err, ErrLibrary) {
				t.Fatalf("%q: %v", script, err)
			}
		}
		if err == nil && r.Yes && (len(values) != 2 && len(values) < 5) {
			t.Fatalf("%q is taken for a grant: %+v", script, r)
		}
		if v, ok := at(values, 1).(int); err == nil && !r.Yes && ok && (v < 0) != (r.Remaining < 0) {
			t.Fatalf("%d ms overflow: %v", v, r.Remaining)
		}
		if v, ok := at(values, 4).(int); err2 == nil && ok && (v < 0) != (s.Remaining < 0) {
			t.Fatalf("%d ms overflow: %v", v, s.Remaining)
		}
		yes := false
		if len(all) > 0 {
			first, _ := all[0].AsInt64()
			yes = first == 1
		}
		if (left || len(fences) > 0) && !yes {
			t.Fatalf("%q is taken for a yes: %v, %v", script, left, fences)
		}
		if err4 == nil && fences != nil && len(fences) != len(values)-2 {
			t.Fatalf("%q is taken for %d tokens", script, len(fences))
		}
		if err2 == nil && s.Held && len(values) < 6 {
			t.Fatalf("%q is taken for a holder: %+v", script, s)
		}
	})
}
