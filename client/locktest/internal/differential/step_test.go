// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// step is what one connection sends at once, or a time in which nothing happens.
type step struct {
	conn  int
	cmds  [][]string
	pause time.Duration
}

// has reports whether one of the commands has that name.
func (s step) has(name string) bool {
	return slices.ContainsFunc(s.cmds, func(cmd []string) bool { return cmd[0] == name })
}

// String is the step as one would type it.
func (s step) String() string {
	if s.pause > 0 {
		return fmt.Sprint("pause ", s.pause)
	}
	var out []string
	for _, cmd := range s.cmds {
		var words []string
		for _, w := range cmd {
			if w == "" || strings.ContainsFunc(w, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
				w = strconv.Quote(w)
			}
			words = append(words, fmt.Sprintf("%.80s", w))
		}
		out = append(out, strings.Join(words, " "))
	}
	return fmt.Sprintf("%d: %s", s.conn, strings.Join(out, "; "))
}

// What stands in a command for the token or the owner that a lock has when it is sent.
func fenceOf(key string) string { return "{fence of " + key + "}" }
func ownerOf(key string) string { return "{owner of " + key + "}" }

var (
	channels = []string{"diff:c1", "diff:c2", "diff:c3"}
	owners   = []string{"a", "b", "c", "d", "k k", "1 2 3", strings.Repeat("o", functions.MaxBytes)}
	holds    = []string{"h1", "h2", "3:abc", " ", ""}
	leases   = []string{"600000", "600001", "600000", "600001", "31536000000"}
	minima   = []string{"1", "1", "60000"}
	fences   = []string{"1", fenceOf(""), fenceOf(""), "9007199254740991"}
	limits   = []string{"1", "2", "3", "1000"}
	blocks   = []string{"1", "2", "10", "1000", "1000000"}
	odd      = []string{"", "0", "-1", "1.5", "1e3", "inf", "nan", "0x10", "9007199254740993", "31536000001", "a\x00", "a\nb", "\x7f", "x y", strings.Repeat("x", 513), "01", " 1"}
)

// source makes steps of one seed.
type source struct {
	*rand.Rand
	hostile int             // how many of 100 steps write into the locks
	held    map[string]bool // which were had after the last step
}

func newSource(seed uint64) source {
	s := source{Rand: rand.New(rand.NewPCG(seed, 7)), held: map[string]bool{}}
	s.hostile = pick(s, 0, 2, 17)
	return s
}

// first are the steps that a sequence begins with: most have somebody who hears, and each second seed a
// hand-over, which chance alone brings about once in a thousand steps.
func (s source) first(seed uint64) []step {
	hears := step{conn: hearer, cmds: [][]string{{"SSUBSCRIBE", channels[0], channels[1]}}}
	switch key, ttl := pick(s, locks[:2]...), pick(s, leases...); {
	case seed%2 == 0:
		return []step{hears, {conn: plain, cmds: [][]string{{"FCALL", functions.Acquire, "1", key, "a", ttl},
			{"FCALL", functions.Wait, "1", key, "b", ttl, "CHANNEL", channels[0]}, {"FCALL", functions.Release, "1", key, "a"}}}}
	case s.IntN(2) == 0:
		return nil
	}
	return []step{hears}
}

func pick[T any](s source, of ...T) T { return of[s.IntN(len(of))] }

// word is one of the good ones, or now and then an odd one.
func (s source) word(good ...string) string {
	if s.IntN(40) == 0 {
		return pick(s, odd...)
	}
	return pick(s, good...)
}

// step is the next one.
func (s source) step() step {
	st := step{conn: pick(s, plain, plain, quiet, loud)}
	key := pick(s, locks[0], locks[0], locks[0], locks[1])
	switch n := s.IntN(100); {
	case n < s.hostile:
		st.cmds = [][]string{s.write(key)}
	case n < 19: // the key's time ends in a moment
		st.cmds = [][]string{pick(s, []string{"PEXPIRE", key, "1"}, []string{"SET", key, "foreign", "PX", "1"})}
	case n < 24 && s.held[key]: // the lease has ended
		st.cmds = [][]string{{"HSET", key, "until", "1"}}
	case n < 75:
		st.cmds = [][]string{s.function(key)}
		if st.conn != plain && s.IntN(3) == 0 {
			st.cmds = [][]string{{"CLIENT", "CACHING", s.word("YES", "YES", "yes", "NO")}, st.cmds[0]}
		}
	case n < 82:
		st.cmds = [][]string{s.reading(key)}
		if (st.conn == quiet || st.conn == loud) && s.IntN(2) == 0 {
			st.cmds = [][]string{{"CLIENT", "CACHING", "YES"}, st.cmds[0]}
		}
	case n < 93:
		st.conn = pick(s, hearer, hearer, loud)
		st.cmds = [][]string{append([]string{pick(s, "SSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE")}, s.names()...)}
	case n < 96:
		st.cmds = [][]string{pick(s, wrong...)}
	default:
		st = step{pause: time.Duration(1+s.IntN(80)) * time.Millisecond}
	}
	return st
}

// wrong are calls that are refused before the library sees them, and a few that it refuses.
var wrong = [][]string{
	{"FCALL"}, {"FCALL", "holdfast_nope", "0"}, {"FCALL", "holdfast_acquire", "x", "diff:a"}, {"FCALL", "holdfast_acquire", "-1", "diff:a"},
	{"FCALL", "holdfast_acquire", "2", "diff:a"}, {"FCALL", "holdfast_acquire", "0"}, {"FCALL", "holdfast_acquire", "2", "diff:a", "diff:b", "a", "60"},
	{"FCALL_RO", "holdfast_acquire", "1", "diff:a", "a", "60"}, {"FCALL", "holdfast_inspect", "1", ""}, {"FCALL", "holdfast_version", "0"},
	{"FCALL_RO", "holdfast_version", "1", "diff:a"}, {"HSET", "diff:a", "f"}, {"HSET", "diff:a"}, {"PEXPIREAT", "diff:a", "x"}, {"SET", "diff:a", "v", "PX", "0"},
	{"SET", "diff:a", "v", "PX"}, {"PEXPIRE", "diff:a", "9223372036854775807"},
	{"CLIENT", "CACHING", "YES"}, {"CLIENT", "CACHING", "MAYBE"}, {"SPUBLISH", "diff:c1"}, {"HGET", "diff:a"}, {"PUBSUB", "SHARDNUMSUB"}, {"WAIT", "0", "x"}, {"FLUSHALL"},
}

// names are channels to subscribe to.
func (s source) names() []string {
	out := []string{pick(s, channels...)}
	if s.IntN(4) == 0 {
		out = append(out, pick(s, channels...))
	}
	return out
}

// words are the options of each function, and what is good for each.
var words = map[string]map[string][]string{
	functions.Acquire:          {"TOKENS": blocks, "MINHOLD": minima, "GUARD": leases, "LIMIT": limits, "SHARED": nil, "VALUE": nil},
	functions.AcquireReentrant: {"GUARD": leases},
	functions.Renew:            {"FENCE": fences, "HOLD": holds, "RAISE": fences},
	functions.Release:          {"HOLD": holds, "ALL": nil, "LAST": fences},
	functions.Wait: {"CHANNEL": channels, "MAXWAIT": {"31536000000", "31536000000", "1"}, "HOLD": holds, "TOKENS": blocks, "MINHOLD": minima,
		"GUARD": leases, "LIMIT": limits, "SHARED": nil, "VALUE": nil},
	functions.Finish:  {"FENCE": fences},
	functions.Leave:   {"HOLD": holds, "FENCE": fences},
	functions.Break:   {"OWNER": owners, "REASON": {"", "a test", "x"}, "FORGET": nil},
	functions.Inspect: {},
	functions.Holders: {},
}

// options are some of the words of a function, in any order and case, now and then one that it does not
// know.
func (s source) options(name, key string) (out []string) {
	rare := map[string]int{"MINHOLD": 8, "GUARD": 30, "MAXWAIT": 8}
	known := slices.Sorted(maps.Keys(words[name]))
	s.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	for _, word := range known {
		if most := rare[word]; s.IntN(max(4, most)) > 0 && (word != "CHANNEL" || s.IntN(3) == 0) {
			continue
		}
		good := words[name][word]
		if out = append(out, pick(s, word, word, word, strings.ToLower(word))); good != nil {
			out = append(out, strings.ReplaceAll(s.word(good...), fenceOf(""), fenceOf(key)))
		}
	}
	if s.IntN(60) == 0 {
		out = append(out, pick(s, "RENEWABLE", "FENCE", "HOLD", "", "x y", "1"))
	}
	return out
}

// function is a call of the library.
func (s source) function(key string) []string {
	name := pick(s, functions.Acquire, functions.Acquire, functions.AcquireReentrant, functions.Renew, functions.Renew, functions.Release, functions.Release,
		functions.Wait, functions.Wait, functions.Wait, functions.Finish, functions.Leave, functions.Break, functions.Inspect, functions.Holders)
	owner, ttl := s.word(owners[:4+s.IntN(4)]...), s.word(leases...)
	if (name == functions.Release || name == functions.Renew || name == functions.Finish || name == functions.Leave) && s.IntN(2) == 0 {
		owner = ownerOf(key)
	}
	cmd := []string{"FCALL", name, "1", key}
	switch name {
	case functions.Acquire, functions.Renew, functions.Wait:
		cmd = append(cmd, owner, ttl)
	case functions.AcquireReentrant:
		cmd = append(cmd, owner, ttl, s.word(holds[:4]...))
	case functions.Release, functions.Leave:
		cmd = append(cmd, owner)
	case functions.Finish:
		cmd = append(cmd, owner, s.word("", "v", "a value"), s.word(minima...))
	case functions.Break:
		if s.IntN(3) > 0 {
			return s.function(key)
		}
	case functions.Inspect, functions.Holders:
		cmd[0] = pick(s, "FCALL", "FCALL_RO")
	}
	return append(cmd, s.options(name, key)...)
}

func (s source) reading(key string) []string {
	return pick(s, []string{"PTTL", key}, []string{"EXISTS", key, key, locks[1]}, []string{"TYPE", key}, []string{"HLEN", key}, []string{"HGET", key, "owner"},
		[]string{"HMGET", key, "owner", "nope", "channel"}, []string{"GET", key},
		[]string{"GETRANGE", key, strconv.Itoa(s.IntN(9) - 4), strconv.Itoa(s.IntN(9) - 4)}, []string{"DBSIZE"},
		[]string{"PUBSUB", "SHARDNUMSUB", channels[0], channels[1], channels[2]})
}
