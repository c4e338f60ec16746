// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var verbs = []Verb{Acquire, Wait, Renew, Release, Leave, Break, Inspect}

func plain(verb Verb) Call { return Call{Verb: verb, Key: "k", Owner: "w", TTL: "3000"} }

func with(call Call, change func(*Call)) Call {
	change(&call)
	return call
}

var (
	joinable = func(c *Call) { c.Hold = "h" }
	ofRun    = func(c *Call) { c.Tokens = 5 }
	limited  = func(c *Call) { c.Crowd = 5 }
	shared   = func(c *Call) { c.Crowd = -1 }
)

func decoded(call Call, value any) (Reply, error) {
	m := message(value)
	return decodeReply(&call, &m)
}

func TestReplies(t *testing.T) {
	busy := Reply{Remaining: 3 * time.Second, Holder: "x", Waiters: 4, Why: "held"}
	for _, c := range []struct {
		call  Call
		value any
		want  Reply
	}{
		{plain(Acquire), 77, Reply{Yes: true, Fence: 77, Top: 77}},
		{plain(Acquire), []any{0, 3000, "x", 4, "held"}, busy},
		{plain(Acquire), []any{0, 3000, "x", 4, "held", 9, "news"}, busy},
		{plain(Acquire), []any{0, 0, "", 4, "serving"}, Reply{Waiters: 4, Why: "serving"}},
		{plain(Acquire), []any{0, -1, "plain", 0, "foreign"}, Reply{Remaining: -time.Millisecond, Holder: "plain", Why: "foreign"}},
		{plain(Acquire), []any{0, 0, "", 0, "unheard-of"}, Reply{Why: "unheard-of"}},
		{with(plain(Acquire), joinable), []any{1, 77, 2}, Reply{Yes: true, Fence: 77, Top: 77}},
		{with(plain(Acquire), joinable), []any{0, 3000, "x", 4, "held"}, busy},
		{with(plain(Acquire), ofRun), []any{1, 77, 5, "news"}, Reply{Yes: true, Fence: 77, Top: 81}},
		{with(plain(Acquire), limited), []any{1, 77, 4}, Reply{Yes: true, Fence: 77, Top: 80}},
		{with(plain(Wait), shared), []any{1, 77, 1}, Reply{Yes: true, Fence: 77, Top: 77}},
		{with(plain(Acquire), shared), []any{0, 3000, "", 4, "limited"}, Reply{Remaining: 3 * time.Second, Waiters: 4, Why: "limited"}},
		{plain(Break), []any{1, "", 77}, Reply{Yes: true, Fence: 77}},
		{plain(Wait), 77, Reply{Yes: true, Fence: 77, Top: 77}},
		{with(plain(Wait), joinable), []any{1, 77, 1}, Reply{Yes: true, Fence: 77, Top: 77}},
		{plain(Wait), []any{0, 9, "x", -4, "held", int64(1700000000000), 76, 1, "news"}, Reply{Remaining: 9 * time.Millisecond, Holder: "x",
			Waiters: -4, Why: "held", ServerMS: 1700000000000, Fence: 76, Subscribers: 1}},
		{plain(Renew), 77, Reply{Yes: true, Fence: 77}},
		{plain(Renew), []any{0, 0, "", 0, "broken by hand, twice"}, Reply{Why: "broken", Reason: "by hand, twice"}},
		{plain(Renew), []any{0, 0, "", 0, "broken"}, Reply{Why: "broken"}},
		{plain(Release), 1, Reply{Yes: true}},
		{with(plain(Release), joinable), []any{1, 0}, Reply{Yes: true}},
		{with(plain(Release), joinable), []any{1, 3}, Reply{Yes: true, Holds: 3}},
		{plain(Release), []any{0, 3000, "x", 4, "held"}, busy},
		{plain(Leave), 1, Reply{Yes: true}},
		{with(plain(Leave), joinable), 1, Reply{Yes: true}},
		{plain(Leave), []any{0, 0, "", 0, "free"}, Reply{Why: "free"}},
		{plain(Break), []any{1, "x", 77}, Reply{Yes: true, Holder: "x", Fence: 77}},
		{plain(Break), []any{1, "x", 0}, Reply{Yes: true, Holder: "x"}},
		{plain(Break), []any{0, 0, "", 0, "free"}, Reply{Why: "free"}},
		{plain(Inspect), []any{1, "x", 2, 77, 3000, 4, "held"}, Reply{Yes: true, Holder: "x", Holds: 2, Fence: 77,
			Remaining: 3 * time.Second, Waiters: 4, Why: "held"}},
		{plain(Inspect), []any{0, "x", 0, 77, 3000, 4, "kept", "news"}, Reply{Holder: "x", Fence: 77, Remaining: 3 * time.Second,
			Waiters: 4, Why: "kept"}},
	} {
		got, err := decoded(c.call, c.value)
		require.NoError(t, err, "%+v: %v", c.call, c.value)
		require.Equal(t, c.want, got, "%+v: %v", c.call, c.value)
	}
}

func TestAPageOfHolders(t *testing.T) {
	for _, c := range []struct {
		value []any
		want  Page
	}{
		{[]any{0}, Page{}},
		{[]any{101, 1, "x", 77, 3000, 4, "", 78, 9}, Page{Next: 101, Holders: []Holder{{Slot: 1, Fence: 77, Owner: "x", Remaining: 3 * time.Second},
			{Slot: 4, Fence: 78, Remaining: 9 * time.Millisecond}}}},
		{[]any{0, 1, "plain", 0, -1}, Page{Holders: []Holder{{Slot: 1, Owner: "plain", Remaining: -time.Millisecond}}}},
	} {
		got, err := decoded(Call{Verb: Holders, From: 1}, c.value)
		require.NoError(t, err)
		require.Equal(t, Reply{Page: &c.want}, got)
	}
}

// A lease that no Duration can hold must not become one that is over: that would be asked about
// without a pause.
func TestALeaseOfCenturies(t *testing.T) {
	for _, ms := range []int64{300 * 366 * 24 * 3600 * 1000, math.MaxInt64} {
		r, err := decoded(plain(Acquire), []any{0, ms, "x", 0, "foreign"})
		require.NoError(t, err)
		require.Greater(t, r.Remaining, 50*365*24*time.Hour)
		require.Positive(t, r.Remaining+time.Millisecond+time.Second, "and more can be added")
	}
}

// What is not of the contract is never a yes: of another one least of all, where a place means
// something else.
func TestRepliesOfAnotherContract(t *testing.T) {
	nobody := []any{
		nil, 0, -1, "x", errors.New("ERR no"), []any{}, []any{2, "surprise"}, []any{"x"}, []any{nil}, []any{0}, []any{0, 3000},
		[]any{0, 3000, "x"}, []any{0, 3000, "x", 4}, []any{0, 3000, "x", 4, 5}, []any{0, "x", "x", 0, "held"}, []any{0, 3000, 7, 0, "held"},
		[]any{0, 3000, errors.New("ERR no"), 1, "held"}, []any{[]any{1, 77, 3000}}, []any{1}, []any{-1, 77, 5},
	}
	for _, verb := range verbs {
		for _, change := range []func(*Call){func(*Call) {}, joinable, ofRun, limited, shared} {
			for _, value := range nobody {
				_, err := decoded(with(plain(verb), change), value)
				require.ErrorIs(t, err, ErrLibrary, "%s: %v", verb, value)
				require.ErrorContains(t, err, "its reply is not of contract 2")
				require.True(t, Unknown(err), "who knows what that one did")
			}
		}
	}
	for _, c := range []struct {
		call  Call
		value any
	}{
		{plain(Acquire), []any{1, 77, 3000, 1, 1}}, // contract 1
		{plain(Wait), []any{1, 77, 3000, 1, 1}},
		{plain(Renew), []any{1, 77, 3000, 1, 1}},
		{plain(Release), []any{1, 0}},
		{plain(Release), 2},
		{plain(Leave), []any{1, 0}},
		{plain(Wait), []any{0, 9, "x", 4, "held"}}, // without what a waiter needs
		{with(plain(Acquire), joinable), 77},
		{with(plain(Acquire), joinable), []any{1, 0, 1}},
		{with(plain(Acquire), joinable), []any{1, 77, 0}},
		{with(plain(Acquire), ofRun), 77},
		{with(plain(Acquire), ofRun), []any{1, int64(math.MaxInt64), 2}},
		{with(plain(Acquire), limited), 77},
		{with(plain(Wait), shared), []any{1, 77}},
		{with(plain(Wait), shared), []any{1, 77, 0}},
		{Call{Verb: Holders, From: 1}, 0},
		{Call{Verb: Holders, From: 1}, []any{0, 1, "x", 7}},
		{Call{Verb: Holders, From: 1}, []any{-1}},
		{Call{Verb: Holders, From: 101}, []any{101, 1, "x", 7, 3000}}, // it would go on for ever
		{with(plain(Release), joinable), 1},
		{plain(Break), 1},
		{plain(Break), []any{1, "x"}},
		{plain(Inspect), 1},
		{plain(Inspect), []any{1, "x", 2, 77, 3000, 4}},
	} {
		r, err := decoded(c.call, c.value)
		require.ErrorIs(t, err, ErrLibrary, "%+v: %v", c.call, c.value)
		require.Zero(t, r)
	}
}

func at(values []any, i int) any {
	if i < len(values) {
		return values[i]
	}
	return nil
}

// FuzzReplies answers what no library would. In the script a digit makes an integer, a letter a
// string, '_' null, '-' an error and '[' an array; one alone is the whole reply.
func FuzzReplies(f *testing.F) {
	f.Add("11999", int64(30000), "holder")
	f.Add("0$$x1x", int64(-1), "")
	f.Add("02x0xx", int64(math.MinInt64), "")
	f.Add("02x0x222", int64(math.MinInt64+1), "")
	f.Add("1x22222x", int64(2), "broken so")
	f.Add("2", int64(7), "")
	f.Add("0[_-", int64(math.MaxInt64), "\x00")
	f.Fuzz(func(t *testing.T, script string, n int64, text string) {
		values := scripted(script, n, text)
		var value any = values
		if len(values) == 1 {
			value = values[0]
		}
		for _, verb := range verbs {
			for _, change := range []func(*Call){func(*Call) {}, joinable, ofRun, limited, shared} {
				call := with(plain(verb), change)
				r, err := decoded(call, value)
				checkReply(t, call, value, values, r, err)
			}
		}
	})
}

func scripted(script string, n int64, text string) []any {
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
	return values
}

func checkReply(t *testing.T, call Call, value any, values []any, r Reply, err error) {
	t.Helper()
	if err != nil {
		if !errors.Is(err, ErrLibrary) || r != (Reply{}) {
			t.Fatalf("%+v: %v: %+v, %v", call, value, r, err)
		}
		return
	}
	alone, isInteger := value.(int)
	first, _ := at(values, 0).(int)
	switch {
	case isInteger && (!r.Yes || alone <= 0):
		t.Fatalf("%+v: %v is taken for %+v", call, value, r)
	case !isInteger && r.Yes != (first == 1):
		t.Fatalf("%+v: %v is taken for %+v", call, value, r)
	case r.Yes && (call.Verb == Acquire || call.Verb == Wait) && (r.Fence <= 0 || r.Top < r.Fence):
		t.Fatalf("%+v: a grant of %v: %+v", call, value, r)
	case !r.Yes && len(values) < 5:
		t.Fatalf("%+v: %v is taken for a refusal: %+v", call, value, r)
	}
	place := 1
	if call.Verb == Inspect {
		place = 4
	}
	if v, ok := at(values, place).(int); ok && (!r.Yes || call.Verb == Inspect) && (v < 0) != (r.Remaining < 0) {
		t.Fatalf("%d ms overflow: %v", v, r.Remaining)
	}
}
