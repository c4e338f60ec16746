// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// argument is one argument of a function, or the value of one of its words, in a call that is right
// otherwise.
type argument struct {
	function, name string
	before, after  []string
	most           int64 // of an integer
	least, longest int   // of a text
}

// arguments are all of all functions.
func arguments() (all []argument) {
	for function, n := range fixed {
		usual := usual(function)
		kinds := []argument{{name: "owner", least: 1, longest: functions.MaxBytes}, {name: "ttl_ms", most: functions.MaxTTL},
			{name: "hold", least: 1, longest: functions.MaxHoldBytes}}
		if function == functions.Finish {
			kinds = []argument{kinds[0], {name: "value", longest: functions.MaxValue}, {name: "keep_ms", most: functions.MaxTTL}}
		}
		for i := range n {
			a := kinds[i]
			a.function, a.before, a.after = function, usual[:i], usual[i+1:]
			all = append(all, a)
		}
	}
	for function, words := range options {
		for _, word := range words {
			if alone(word) {
				continue
			}
			a := argument{function: function, name: word, before: append(usual(function), word), most: bounds[word]}
			a.least, a.longest = lengths[word][0], lengths[word][1]
			if word == functions.OptTokens { // a run is no longer than its lease in microseconds
				a.before[1] = "1000"
			}
			if word == functions.OptGuard { // and a guard no shorter than it
				a.before[1] = "1"
			}
			all = append(all, a)
		}
	}
	return all
}

// usual are the arguments before the words.
func usual(function string) []string {
	if function == functions.Finish {
		return []string{"a", "v", long}
	}
	return slices.Clone([]string{"a", long, "h"}[:fixed[function]])
}

func (a argument) with(value string) []string {
	return slices.Concat(a.before, []string{value}, a.after)
}

func (a argument) good() []string {
	switch {
	case a.name == functions.OptRaise:
		return []string{"1"} // it must not be far ahead of the clock either
	case a.most > 0:
		return []string{"1", fmt.Sprint(a.most)}
	case a.name == "value":
		return append(odd(a.longest), "", "\x00\r\n\x7f")
	case a.least == 0:
		return append(odd(a.longest), "")
	}
	return odd(a.longest)
}

func (a argument) bad() []string {
	switch {
	case a.most > 0:
		return append([]string{fmt.Sprint(a.most + 1)}, notIntegers...)
	case a.least == 0:
		return []string{over(a.longest)}
	}
	return []string{"", over(a.longest), strings.Repeat("x", 512<<10)}
}

// odd returns byte strings up to the bound that a careless library would trip over.
func odd(most int) []string {
	all := []string{"x", " ", "a b", "\xff\xfe", "\u0085", "%s %d %n", "%c", "1 2 3 4", "0:", "$(x)", "ключ", "3:abc", ">5", "<0", "HOLD", "ALL"}
	return append(all, strings.Repeat("y", most), strings.Repeat("\xff", most))
}

func over(most int) string { return strings.Repeat("z", most+1) }

// Every argument is refused outside its bounds by name, with the key as it was: absent, and held
// with a line. Text of one is shown in the logs of others, so none of it may end a line.
// Within its bounds it is taken.
func TestArgumentsHaveBounds(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		held, free := b.key("held"), b.key("free")
		b.take(held, "a", long)
		b.wait(held, "b", "", 1)
		before := b.c.do("DUMP", held)
		for _, a := range arguments() {
			refused := func(value, because string) {
				for _, k := range []string{held, free} {
					if got := b.call(a.function, k, a.with(value)...); !matches(got, prefix("HFARG "+a.name+because)) {
						t.Errorf("%s with %s %.40q: %s", a.function, a.name, value, show(got))
					}
				}
			}
			for _, value := range a.bad() {
				refused(value, " must ")
			}
			if a.most == 0 && a.name != "value" {
				for _, value := range []string{"a\nb", "\r", "\x00", "a\x00", "\x1b[2J", "\x7f", "\t", strings.Repeat("x", 60) + "\x01"} {
					refused(value, " must not contain control characters")
				}
			}
			for _, value := range a.good() {
				k := b.key("good")
				if got, bad := b.call(a.function, k, a.with(value)...).(failure); bad {
					t.Errorf("%s with %s %.40q: %s", a.function, a.name, value, got)
				}
				b.c.do("DEL", k)
			}
		}
		want(t, b.c.do("EXISTS", free), 0)
		want(t, b.c.do("DUMP", held), before)
	})
}

// What a function does not know, or what makes no sense, is refused before anything is read.
func TestMisuse(t *testing.T) {
	cases := map[string][]string{
		"HFOPTION GAURD is not known":                  {functions.Acquire, "a", long, "GAURD", long},
		"HFOPTION RAISE is not known":                  {functions.Acquire, "a", long, "RAISE", "5"},
		"HFOPTION 35000 is not known":                  {functions.Acquire, "a", long, "35000", "1"},
		"HFOPTION X is not known":                      {functions.Inspect, "x"},
		"HFOPTION argument 3 is not known":             {functions.Acquire, "a", long, "A\r\nB"},
		"HFOPTION argument 4 is not known":             {functions.AcquireReentrant, "a", long, "h", strings.Repeat("x", 99)},
		"HFARG GUARD needs a value":                    {functions.Wait, "a", long, "GUARD"},
		"HFARG GUARD must not be less than ttl_ms":     {functions.Acquire, "a", long, "GUARD", "599999"},
		"HFARG GUARD must be given only once":          {functions.Acquire, "a", long, "GUARD", long, "guard", long},
		"HFARG ALL must be given only once":            {functions.Release, "a", "ALL", "all"},
		"HFARG TOKENS must not be more than 1000":      {functions.Wait, "b", "5", functions.OptChannel, "c", "TOKENS", "5001"},
		"HFARG RAISE must be no more than 60 s ahead":  {functions.Renew, "a", long, "RAISE", "9007199254740991"},
		"HFARG LAST must be an integer":                {functions.Release, "a", "LAST", "007"},
		"HFARG from must be an integer from 1 to 1000": {functions.Holders, "1001"},
	}
	for _, pair := range exclusive {
		for function, words := range options {
			if slices.Contains(words, pair[0]) && slices.Contains(words, pair[1]) {
				c := append([]string{function}, usual(function)...)
				for _, word := range pair {
					if c = append(c, word); !alone(word) {
						c = append(c, "5")
					}
				}
				cases["HFARG "+pair[0]+" is of no use with "+pair[1]] = c
			}
		}
	}
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, held := range []bool{false, true} {
			if held {
				b.take(k, "a", long)
			}
			before := b.c.do("DUMP", k)
			for problem, c := range cases {
				want(t, b.call(c[0], k, c[1:]...), prefix(problem))
			}
			want(t, b.c.do("DUMP", k), before)
		}
	})
}

// The number of arguments and of keys is checked before anything is read.
func TestArityIsChecked(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, name := range functions.Names() {
			wrong := map[string][]int{functions.Memory: {1, 2, 4}, functions.Holders: {2}, functions.ReadVersion: {1, 2}}[name]
			for n := range fixed[name] {
				wrong = append(wrong, n)
			}
			for _, n := range wrong {
				want(t, b.call(name, k, strings.Fields(strings.Repeat("1 ", n))...), prefix("HFARG wrong number of arguments, expected: "))
			}
			if name == functions.ReadVersion || name == functions.Memory {
				want(t, b.c.do("FCALL", name, "2", k, k+"2"), failure("HFARG at most one key is possible, to choose the node"))
				continue
			}
			for _, keys := range [][]string{{"0"}, {"2", k, k + "2"}, {"2", k, k}} {
				call := append([]string{"FCALL", name}, keys...)
				want(t, b.c.do(append(call, "a", long, "c")...), failure("HFARG exactly one key is needed, the lock"))
			}
			want(t, b.call(name, "", "a", long, "c"), failure("HFARG key must not be empty"))
		}
		want(t, b.c.do("EXISTS", k, k+"2"), 0)
	})
}

// step is one call and what it must reply.
type step struct {
	function string
	args     []string
	reply    any
}

func (c *conn) run(s step, key string) any {
	c.tb.Helper()
	return c.fcall(s.function, key, s.args...)
}

// A repeat writes, so that a WAIT after it covers the first call too: each one moves the
// replication offset.
func TestRepeatsWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, call := range [][]string{
			{functions.Acquire, "a", long}, {functions.Wait, "a", long}, {functions.Renew, "a", long},
			{functions.Wait, "b", long}, {functions.Wait, "c", long, "HOLD", "h"},
		} {
			b.call(call[0], k, call[1:]...)
			before := b.dirty()
			b.call(call[0], k, call[1:]...)
			if b.dirty() == before {
				t.Errorf("the repeat of %v wrote nothing", call)
			}
		}
	})
}
