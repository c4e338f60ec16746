// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/stretchr/testify/require"
)

func votes(tokens []int64) (all []fcall.Reply) {
	for _, token := range tokens {
		all = append(all, fcall.Reply{Yes: true, Fence: token})
	}
	return all
}

func TestTheTokenThatAMajorityCanHave(t *testing.T) {
	for _, c := range []struct {
		tokens []int64
		want   int64
		known  bool
	}{
		{nil, 0, false},
		{[]int64{100, 200}, 0, false},
		{[]int64{100, 300, 200}, 300, false},
		{[]int64{300, 300, 200}, 300, false},
		{[]int64{300, 300, 300}, 300, true},
		{[]int64{100, 300, 200, 400}, 300, false},
		{[]int64{100, 300, 300, 400}, 300, true},
		{[]int64{100, 300, 200, 400, 350}, 300, true},
	} {
		one := poll{servers: 5, need: 3, yes: votes(c.tokens)}
		require.Equal(t, c.want, one.token(), c.tokens)
		require.Equal(t, c.known, one.known(), c.tokens)
	}
}

// Whatever the clocks of five servers say: who gets a majority after another gets a higher token.
func TestTokensOfMajoritiesGrow(t *testing.T) {
	const far = 50_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	got, rounds := 0, 0
	for range 20_000 {
		clock, last := [5]int64{}, [5]int64{}
		for i := range clock {
			clock[i] = 1_000_000_000 + rng.Int64N(2*far)*rng.Int64N(2)
		}
		raise := func(i int, token int64) bool { // as holdfast_renew does
			if token > clock[i]+60_000_000 {
				return false
			}
			last[i] = max(last[i], token)
			return true
		}
		before := int64(0)
		for range 6 {
			one, voters, tokens := poll{servers: 5, need: 3}, []int{}, []int64{}
			for i := range clock {
				if clock[i] += rng.Int64N(1000); rng.IntN(4) > 0 {
					last[i] = max(clock[i], last[i]+1)
					voters, tokens = append(voters, i), append(tokens, last[i])
				}
			}
			one.yes = votes(tokens)
			token, has := one.token(), 0
			if !one.known() {
				rounds++
				for n, i := range voters {
					if tokens[n] >= token && token != 0 || rng.IntN(8) > 0 && token != 0 && raise(i, token) {
						has++
					}
				}
				if has < 3 {
					continue
				}
			}
			if token <= before {
				t.Fatalf("token %d after %d, clocks %v", token, before, clock)
			}
			before, got = token, got+1
		}
	}
	require.Greater(t, got, 10_000)
	require.Greater(t, rounds, 10_000)
}

func TestTallyIsDecided(t *testing.T) {
	yes := fcall.Outcome{Reply: fcall.Reply{Yes: true, Fence: 1}}
	high := fcall.Outcome{Reply: fcall.Reply{Yes: true, Fence: 2}}
	no := fcall.Outcome{Reply: fcall.Reply{Holder: "x"}}
	down := fcall.Outcome{Err: fcall.ErrUnreachable}
	for name, c := range map[string]struct {
		answers []fcall.Outcome
		decided bool
	}{
		"a majority":                            {[]fcall.Outcome{yes, yes, yes}, true},
		"a majority that does not know a token": {[]fcall.Outcome{yes, high, yes}, false},
		"a majority that knows one":             {[]fcall.Outcome{yes, high, high, high}, true},
		"two against one":                       {[]fcall.Outcome{yes, yes, no}, false},
		"too many are down":                     {[]fcall.Outcome{down, down, down}, true},
		"no majority is possible":               {[]fcall.Outcome{down, no, no, yes}, false},
	} {
		one := poll{servers: 5, need: 3}
		for _, a := range c.answers {
			one.add(a)
		}
		require.Equal(t, c.decided, one.decided(), name)
	}
	question := count{poll: poll{servers: 3, need: 2, failed: []error{fcall.ErrUnreachable, fcall.ErrUnreachable}}}
	require.True(t, question.decided(0), "the third can say what it likes")
}

// Servers that were away at a break can vote for its victim afterwards: it has lost the lock all the same.
func TestABreakThatAMinorityRemembers(t *testing.T) {
	broken := fcall.Reply{Why: functions.WhyBroken, Reason: "it hangs"}
	c := count{poll: poll{servers: 3, need: 2, yes: votes([]int64{7, 7}), no: []fcall.Reply{broken}}, call: fcall.Call{Verb: fcall.Renew, Fence: 7}}
	require.Equal(t, broken, c.outcome().Reply)
}

// What a server does not say may be what makes a majority.
func TestAnOwnerThatMayHaveAMajority(t *testing.T) {
	held := func(owner string, token int64, left time.Duration) fcall.Outcome {
		return fcall.Outcome{Reply: fcall.Reply{Yes: true, Holder: owner, Holds: 1, Fence: token, Remaining: left}}
	}
	kept := func(owner string, token int64, left time.Duration) fcall.Outcome {
		return fcall.Outcome{Reply: fcall.Reply{Holder: owner, Fence: token, Remaining: left, Why: functions.WhyKept}}
	}
	none := fcall.Outcome{Reply: fcall.Reply{Why: functions.WhyFree}}
	a := func(token int64, left time.Duration) fcall.Reply {
		return fcall.Reply{Yes: true, Holder: "a", Holds: 1, Fence: token, Remaining: left}
	}
	for name, c := range map[string]struct {
		said []fcall.Outcome
		want fcall.Reply
	}{
		"all have it":                   {[]fcall.Outcome{held("a", 7, 3), held("b", 9, 9), held("a", 5, 4), held("a", 7, 9), held("a", 7, 8)}, a(7, 4)},
		"one voted late":                {[]fcall.Outcome{held("a", 9, 9), held("a", 7, 3), held("a", 7, 3), held("a", 7, 3), held("a", 7, 3)}, a(7, 3)},
		"all have answered":             {[]fcall.Outcome{held("a", 7, 3), held("a", 7, 3), none, none, none}, none.Reply},
		"one is silent":                 {[]fcall.Outcome{held("a", 7, 4), held("a", 5, 3), none, none}, a(7, 3)},
		"one is silent, and one has it": {[]fcall.Outcome{held("a", 7, 4), none, none, none}, none.Reply},
		"two are silent":                {[]fcall.Outcome{held("a", 7, 4), none, none}, a(7, 4)},
		"a majority keeps it":           {[]fcall.Outcome{kept("a", 7, 4), kept("a", 7, 5), kept("a", 7, 6), none, none}, kept("a", 7, 4).Reply},
		"one keeps it":                  {[]fcall.Outcome{none, kept("a", 7, 4), none, none, none}, none.Reply},
		"two have some":                 {[]fcall.Outcome{held("b", 9, 9), held("a", 7, 4), held("a", 7, 4)}, a(7, 4)},
	} {
		p := poll{servers: 5, need: 3}
		for _, o := range c.said {
			p.add(o)
		}
		require.Equal(t, c.want, p.owned(), name)
	}
}
