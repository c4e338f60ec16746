// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

const largest = "9007199254740991" // 2^53-1, the largest token and integer

// fenced is a resource and its fence, on a server with the second library.
type fenced struct {
	*bed
	c          *conn
	key, fence string
}

// eachFenced runs a test on every server, and with both versions of the protocol: replies are the
// same.
func eachFenced(t *testing.T, test func(t *testing.T, f *fenced), opts ...server.Option) {
	each(t, func(t *testing.T, b *bed) {
		want(t, b.c.do("FUNCTION", "LOAD", "REPLACE", functions.FencedSource), functions.FencedLibrary)
		for _, resp := range []int{2, 3} {
			name := fmt.Sprintf("resp%d", resp)
			t.Run(name, func(t *testing.T) {
				b := *b
				b.tb = t
				test(t, &fenced{&b, b.dial(resp), b.key("{" + name + "}"), b.key("{" + name + "}:fence")})
			})
		}
	}, opts...)
}

func (f *fenced) call(function string, args ...string) any {
	f.tb.Helper()
	if function == functions.Claim {
		return f.c.fcall(function, f.fence, args...)
	}
	return f.c.do(append([]string{"FCALL", function, "2", f.key, f.fence}, args...)...)
}

// writes are all functions that take a token, each with the rest of its arguments, in an order in
// which each fits what the one before left, and what each replies behind the token.
var writes = []struct {
	function string
	args     []string
	reply    []any
}{
	{functions.Claim, nil, nil},
	{functions.SetIf, []string{"41"}, nil},
	{functions.SetIf, []string{"41", long}, nil},
	{functions.IncrByIf, []string{"1"}, []any{42}},
	{functions.AppendIf, []string{"\x00\n"}, []any{4}},
	{functions.DelIf, nil, []any{1}},
	{functions.HSetIf, []string{"left", "1", "right\x00", "2"}, []any{2}},
}

func TestFencedWritesTakeEqualAndNewerTokensOnly(t *testing.T) {
	eachFenced(t, func(t *testing.T, f *fenced) {
		for i, w := range writes {
			at := int64(100 * (i + 1))
			token := func(n int64) []string { return append([]string{itoa(n)}, w.args...) }
			want(t, f.call(w.function, token(at)...), append([]any{1, between{at, at}}, w.reply...))
			want(t, f.c.do("GET", f.fence), itoa(at))
			before := f.c.do("DUMP", f.key)
			want(t, f.call(w.function, token(at-1)...), []any{0, between{at, at}})
			want(t, f.c.do("DUMP", f.key), before)
			want(t, f.c.do("GET", f.fence), itoa(at))
		}
		want(t, f.c.do("HMGET", f.key, "left", "right\x00"), []any{"1", "2"})
		for _, w := range writes { // equal tokens, of a holder that writes several times
			got := f.call(w.function, append([]string{"700"}, w.args...)...).([]any)
			want(t, got[:2], []any{1, 700})
		}
		want(t, f.c.do("PTTL", f.fence), -1)
	})
}

// 2^53-1 and its neighbours are told apart, in tokens and in values, and nothing is rounded.
func TestFencedIntegersAreExact(t *testing.T) {
	eachFenced(t, func(t *testing.T, f *fenced) {
		const below = "9007199254740990"
		most := between{1<<53 - 1, 1<<53 - 1}
		want(t, f.call(functions.Claim, below), []any{1, between{1<<53 - 2, 1<<53 - 2}})
		want(t, f.call(functions.SetIf, largest, below), []any{1, most})
		want(t, f.call(functions.SetIf, below, "x"), []any{0, most})
		want(t, f.c.do("GET", f.fence), largest)
		want(t, f.call(functions.IncrByIf, largest, "1"), []any{1, most, most})
		want(t, f.c.do("GET", f.key), largest)
		want(t, f.call(functions.IncrByIf, largest, "1"), prefix("HFARG by must not take the resource out of -"+largest+" to "+largest))
		want(t, f.call(functions.IncrByIf, largest, "-"+largest), []any{1, most, 0})
		want(t, f.call(functions.IncrByIf, largest, "-"+largest), []any{1, most, between{1 - 1<<53, 1 - 1<<53}})
		want(t, f.call(functions.IncrByIf, largest, "-1"), prefix("HFARG by must not take the resource out of "))
		want(t, f.call(functions.IncrByIf, largest, "0"), []any{1, most, between{1 - 1<<53, 1 - 1<<53}})
	})
}

func TestFencedWhenTheResourceIsGone(t *testing.T) {
	eachFenced(t, func(t *testing.T, f *fenced) {
		want(t, f.call(functions.SetIf, "20", "v", "1"), []any{1, 20})
		eventually(t, "the resource expires", func() bool { return f.c.do("EXISTS", f.key) == int64(0) })
		want(t, f.call(functions.SetIf, "19", "late"), []any{0, 20})
		want(t, f.call(functions.DelIf, "20"), []any{1, 20, 0})
		want(t, f.call(functions.AppendIf, "19", "late"), []any{0, 20})
		want(t, f.c.do("EXISTS", f.key), 0)

		want(t, f.call(functions.SetIf, "20", "v", long), []any{1, 20})
		want(t, f.call(functions.AppendIf, "20", "w"), []any{1, 20, 2})
		want(t, f.c.do("PTTL", f.key), between{1, 600000})
		want(t, f.call(functions.SetIf, "20", "v"), []any{1, 20})
		want(t, f.c.do("PTTL", f.key), -1)
	})
}

// Misuse is an error that names the argument, and changes nothing.
func TestFencedMisuseNamesTheArgument(t *testing.T) {
	eachFenced(t, func(t *testing.T, f *fenced) {
		bad := append([]string{"9007199254740992", "-1"}, notIntegers...)
		for _, w := range writes {
			for _, token := range bad {
				want(t, f.call(w.function, append([]string{token}, w.args...)...), failure("HFARG token must be an integer from 1 to "+largest))
			}
			want(t, f.call(w.function), prefix("HFARG wrong number of arguments, expected: token"))
			if w.function != functions.HSetIf {
				more := append([]string{"1"}, append(slices.Clone(w.args), "1", "1")...)
				want(t, f.call(w.function, more...), prefix("HFARG wrong number of arguments, expected: token"))
			}
		}
		for _, ttl := range append([]string{"31536000001", "-1"}, notIntegers...) {
			want(t, f.call(functions.SetIf, "1", "v", ttl), failure("HFARG ttl_ms must be an integer from 1 to 31536000000"))
		}
		for _, by := range append([]string{"-0", "+1", "--1", "9007199254740992", "-9007199254740992"}, notIntegers...) {
			if by == "0" || by == "-1" {
				continue
			}
			want(t, f.call(functions.IncrByIf, "1", by), failure("HFARG by must be an integer from -"+largest+" to "+largest))
		}
		want(t, f.call(functions.HSetIf, "1", "f", "v", "g"), prefix("HFARG value is missing"))
		pairs := strings.Split(strings.Repeat("f,v,", 101), ",")[:202]
		want(t, f.call(functions.HSetIf, append([]string{"1"}, pairs...)...), prefix("HFARG wrong number of arguments"))

		set := func(keys ...string) any {
			return f.c.do(append(append([]string{"FCALL", functions.SetIf, fmt.Sprint(len(keys))}, keys...), "1", "v")...)
		}
		want(t, set(), prefix("HFARG exactly two keys"))
		want(t, set(f.key), prefix("HFARG exactly two keys"))
		want(t, set(f.key, f.fence, f.key), prefix("HFARG exactly two keys"))
		want(t, set("", f.fence), prefix("HFARG resource key must not be empty"))
		want(t, set(f.key, ""), prefix("HFARG fence key must not be empty"))
		want(t, set(f.key, f.key), prefix("HFARG fence key must not be the resource"))
		want(t, f.c.do("FCALL", functions.Claim, "2", f.fence, f.key, "1"), prefix("HFARG exactly one key"))
		want(t, f.c.do("FCALL", functions.Claim, "1", "", "1"), prefix("HFARG fence key must not be empty"))
		want(t, f.c.do("EXISTS", f.key, f.fence), 0)

		want(t, f.call(functions.HSetIf, append([]string{"1"}, pairs[:200]...)...), []any{1, 1, 1})
		want(t, f.c.do("FCALL", functions.ReadFencedVersion, "0"), functions.FencedVersion)
		want(t, f.c.do("FCALL_RO", functions.ReadFencedVersion, "1", f.key), functions.FencedVersion)
		want(t, f.c.do("FCALL", functions.ReadFencedVersion, "0", "1"), prefix("HFARG wrong number"))
	})
}

// The wrong type is an error that changes nothing; to an older holder, it is a refusal before that.
func TestFencedWrongTypes(t *testing.T) {
	eachFenced(t, func(t *testing.T, f *fenced) {
		f.call(functions.Claim, "5")
		expect := func(function, text string, args ...string) {
			t.Helper()
			before := f.c.do("DUMP", f.key)
			want(t, f.call(function, append([]string{"4"}, args...)...), []any{0, 5})
			want(t, f.call(function, append([]string{"6"}, args...)...), prefix("HFTYPE "+text))
			want(t, f.c.do("GET", f.fence), "5")
			want(t, f.c.do("DUMP", f.key), before)
		}
		f.c.do("RPUSH", f.key, "1")
		expect(functions.IncrByIf, "the resource is a list, not a string", "1")
		expect(functions.AppendIf, "the resource is a list, not a string", "1")
		expect(functions.HSetIf, "the resource is a list, not a hash", "f", "v")
		want(t, f.call(functions.SetIf, "5", "12345678901234567"), []any{1, 5})
		for _, value := range []string{"", " 1", "1 ", "01", "+1", "-0", "1.0", "1e3", "0x1", "nan", "inf", "9007199254740992", "-9007199254740992"} {
			f.c.do("SET", f.key, value)
			expect(functions.IncrByIf, "the resource is not an integer from -"+largest+" to "+largest, "1")
		}
		f.c.do("DEL", f.key)
		f.c.do("RPUSH", f.key, "1")
		want(t, f.call(functions.DelIf, "5"), []any{1, 5, 1})

		spoil := [][]string{{"SET", f.fence, ""}, {"SET", f.fence, "0"}, {"SET", f.fence, "1e3"}, {"SET", f.fence, "9007199254740992"},
			{"SET", f.fence, strings.Repeat("1", 1<<20)}, {"HSET", f.fence, "f", "v"}}
		for _, command := range spoil {
			f.c.do("DEL", f.fence)
			f.c.do(command...)
			before := f.c.do("DUMP", f.fence)
			for _, w := range writes {
				want(t, f.call(w.function, append([]string{"6"}, w.args...)...), failure("HFTYPE the fence key holds something that is not a token"))
			}
			want(t, f.c.do("DUMP", f.fence), before)
			want(t, f.c.do("EXISTS", f.key), 0)
		}
	})
}

// An equal token is written too, so that a WAIT behind a repeat covers it; a TTL that somebody gave
// the fence stays.
func TestFencedRepeatsWrite(t *testing.T) {
	eachFenced(t, func(t *testing.T, f *fenced) {
		want(t, f.call(functions.Claim, "5"), []any{1, 5})
		want(t, f.c.do("PEXPIRE", f.fence, long), 1)
		for _, function := range []string{functions.Claim, functions.DelIf} {
			before := f.dirty()
			want(t, f.call(function, "5").([]any)[1], 5)
			if f.dirty() == before {
				t.Errorf("the repeat of %s wrote nothing", function)
			}
			want(t, f.c.do("PTTL", f.fence), whole)
		}
		want(t, f.call(functions.Claim, "6"), []any{1, 6})
		want(t, f.c.do("PTTL", f.fence), -1)
	})
}

// The line suffices, nothing in it is there for no reason, and where one is missing the fence is
// never lower than what was written.
func TestFencedMinimalACL(t *testing.T) {
	eachFenced(t, func(t *testing.T, f *fenced) {
		f.key, f.fence = "{stock:7}", "{stock:7}:fence"
		rules := aclOf(t, "writer", "FENCED.md")
		tour := func(rules []string) (errs []failure) {
			f.bed.c.do("DEL", f.key, f.fence)
			f.c = f.as(rules)
			for i, w := range writes {
				if w.function == functions.HSetIf {
					f.bed.c.do("DEL", f.key) // it may still be a string
				}
				before := f.bed.c.do("DUMP", f.key)
				reply := f.call(w.function, append([]string{fmt.Sprint(i + 1)}, w.args...)...)
				if bad, is := reply.(failure); is {
					errs = append(errs, bad)
				} else {
					want(t, f.bed.c.do("GET", f.fence), fmt.Sprint(i+1))
					continue
				}
				want(t, f.bed.c.do("DUMP", f.key), before)
			}
			return errs
		}
		if errs := tour(rules); len(errs) > 0 {
			t.Fatalf("errors with %v: %v", rules, errs)
		}
		want(t, f.c.fcall(functions.Claim, "other", "1"), prefix("NOPERM "))
		for i, missing := range rules {
			if !strings.HasPrefix(missing, "+") || strings.HasPrefix(missing, "+fcall") {
				continue
			}
			errs := tour(slices.Delete(slices.Clone(rules), i, i+1))
			if len(errs) == 0 {
				t.Errorf("%s is not needed", missing)
			}
			for _, e := range errs {
				want(t, e, prefix("HFSERVER "))
				expectNoTraceOfLua(t, string(e))
			}
		}
	}, server.Owned())
}

// With the memory full, only what frees memory runs.
func TestFencedWritesWithoutMemory(t *testing.T) {
	eachFenced(t, func(t *testing.T, f *fenced) {
		want(t, f.call(functions.SetIf, "1", "1"), []any{1, 1})
		f.c.do("CONFIG", "SET", "maxmemory", "1")
		defer f.c.do("CONFIG", "SET", "maxmemory", "0")
		for _, w := range writes {
			if w.function != functions.DelIf {
				want(t, f.call(w.function, append([]string{"2"}, w.args...)...), prefix("OOM "))
			}
		}
		want(t, f.call(functions.DelIf, "2"), []any{1, 2, 1})
	}, server.Owned())
}
