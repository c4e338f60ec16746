package quorum

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

func votes(fences ...int64) (v []vote) {
	for i, fence := range fences {
		v = append(v, vote{i, fence})
	}
	return v
}

func TestTheTokensThatAMajorityCanHave(t *testing.T) {
	const now, far = 1_000_000, 1_000_000 + 1
	for _, c := range []struct {
		votes, want []int64
		won         bool
	}{
		{nil, nil, false},
		{[]int64{100, 200}, nil, false},
		{[]int64{100, 300, 200}, []int64{300}, true},
		{[]int64{100, 300, 200, 400, 350}, []int64{400, 350, 300}, true},
		{[]int64{100, 200, 200, 200}, []int64{200}, true},
		{[]int64{100, far, 200}, []int64{far}, false},
		{[]int64{100, far, 200, 300}, []int64{300}, true},
		{[]int64{far + 2, far, far + 1}, []int64{far + 2}, false},
	} {
		tally := tally{servers: 5, need: 3, yes: votes(c.votes...), limit: now}
		assert.Equal(t, c.want, tally.fences(), c.votes)
		assert.Equal(t, c.won, tally.won(), c.votes)
	}
}

// Whatever the clocks of five servers say, and that of the process: who gets a majority after another
// gets a higher token.
func TestTokensOfMajoritiesGrow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	got := 0
	for range 20_000 {
		clock, last := [5]int64{}, [5]int64{}
		for i := range clock {
			clock[i] = 1_000_000_000 + rng.Int64N(2*ahead)*rng.Int64N(2)
		}
		before := int64(0)
		for range 6 {
			tally := tally{servers: 5, need: 3, limit: 1_000_000_000 + rng.Int64N(3*ahead)}
			for i := range clock {
				if clock[i] += rng.Int64N(1000); rng.IntN(4) > 0 {
					last[i] = max(clock[i], last[i]+1)
					tally.yes = append(tally.yes, vote{i, last[i]})
				}
			}
			for _, fence := range tally.fences() {
				raised := 0
				for _, v := range tally.yes {
					if fence <= clock[v.from]+60_000_000 && rng.IntN(8) > 0 { // as holdfast_raise does
						last[v.from] = max(last[v.from], fence)
						raised++
					}
				}
				if raised < 3 {
					continue
				}
				if fence <= before {
					t.Fatalf("token %d after %d, clocks %v", fence, before, clock)
				}
				before, got = fence, got+1
				break
			}
		}
	}
	assert.Greater(t, got, 10_000)
}

func TestTallyIsDecided(t *testing.T) {
	yes := func(from int) answer[fcall.Reply] {
		return answer[fcall.Reply]{from, fcall.Reply{Yes: true, Fence: 1}, nil}
	}
	no := func(from int) answer[fcall.Reply] { return answer[fcall.Reply]{from, fcall.Reply{Holder: "x"}, nil} }
	closed := func(from int) answer[fcall.Reply] { return answer[fcall.Reply]{from, fcall.Reply{Remaining: 1}, nil} }
	down := func(from int) answer[fcall.Reply] {
		return answer[fcall.Reply]{from, fcall.Reply{}, fcall.ErrUnreachable}
	}
	for name, c := range map[string]struct {
		answers []answer[fcall.Reply]
		decided bool
	}{
		"a majority without the line's server":   {[]answer[fcall.Reply]{yes(1), yes(2), yes(3)}, false},
		"a majority with it":                     {[]answer[fcall.Reply]{yes(0), yes(2), yes(3)}, true},
		"a majority, and it is down":             {[]answer[fcall.Reply]{yes(1), yes(2), yes(3), down(0)}, true},
		"a majority, and it has forgotten":       {[]answer[fcall.Reply]{yes(1), yes(2), yes(3), closed(0)}, true},
		"it says no":                             {[]answer[fcall.Reply]{no(0)}, false},
		"too many are down":                      {[]answer[fcall.Reply]{down(0), down(1), down(2)}, true},
		"no majority is possible, nor an answer": {[]answer[fcall.Reply]{down(1), down(2), no(3)}, false},
		"no majority is possible, as yet":        {[]answer[fcall.Reply]{down(1), no(2), no(3), yes(4)}, false},
		"no majority is possible":                {[]answer[fcall.Reply]{down(1), no(2), no(3), yes(4), yes(0)}, true},
		"two against one":                        {[]answer[fcall.Reply]{yes(1), yes(2), no(3)}, false},
	} {
		tally := tally{servers: 5, need: 3, line: 0, limit: 1}
		for _, a := range c.answers {
			tally.add(a)
		}
		assert.Equal(t, c.decided, tally.decided(), name)
	}
}

func TestMajorityOfStandings(t *testing.T) {
	held := func(owner string, fence int64, left time.Duration) fcall.Standing {
		return fcall.Standing{Held: true, Owner: owner, Fence: fence, Remaining: left}
	}
	s, agreed := majority([]fcall.Standing{held("a", 7, 3), held("b", 9, 9), held("a", 5, 4), held("a", 7, 9), held("a", 7, 8)}, 3)
	assert.True(t, agreed)
	assert.Equal(t, fcall.Standing{Held: true, Owner: "a", Holds: 1, Fence: 7, Remaining: 4}, s)
	s, agreed = majority([]fcall.Standing{held("a", 7, 3), held("b", 9, 9), {}}, 3)
	assert.True(t, agreed)
	assert.False(t, s.Held)
	_, agreed = majority([]fcall.Standing{{}, {}}, 3)
	assert.False(t, agreed)
}

// What a server does not say may be what makes a majority.
func TestAnOwnerThatMayHaveAMajority(t *testing.T) {
	held := func(owner string, fence int64, left time.Duration) fcall.Standing {
		return fcall.Standing{Held: true, Owner: owner, Fence: fence, Remaining: left}
	}
	for name, c := range map[string]struct {
		standings []fcall.Standing
		silent    int
		want      fcall.Standing
	}{
		"all have answered":          {[]fcall.Standing{held("a", 7, 3), held("a", 7, 3), {}, {}, {}}, 0, fcall.Standing{}},
		"one is silent":              {[]fcall.Standing{held("a", 7, 4), held("a", 5, 3), {}, {}}, 1, fcall.Standing{Held: true, Owner: "a", Holds: 1, Fence: 7, Remaining: 3}},
		"one is silent, and one has": {[]fcall.Standing{held("a", 7, 4), {}, {}, {}}, 1, fcall.Standing{}},
		"two are silent":             {[]fcall.Standing{held("a", 7, 4), {}, {}}, 2, fcall.Standing{Held: true, Owner: "a", Holds: 1, Fence: 7, Remaining: 4}},
		"two have some":              {[]fcall.Standing{held("b", 9, 9), held("a", 7, 4), held("a", 7, 4)}, 2, fcall.Standing{Held: true, Owner: "a", Holds: 1, Fence: 7, Remaining: 4}},
	} {
		assert.Equal(t, c.want, owned(c.standings, 3, c.silent), name)
	}
}

func TestAVoteIsAskedForAgainALeaseAfterTheLastYes(t *testing.T) {
	all, now := newBallots(3), time.Now()
	b := all.open(fcall.Request{Owner: "a", TTL: "1000"})
	assert.True(t, b.lapsed(0, now), "it never voted")
	assert.False(t, b.answered(0, b.asked(0), now, fcall.Reply{Yes: true}, nil))
	assert.False(t, b.lapsed(0, now.Add(time.Second)), "it may have been broken there")
	assert.True(t, b.lapsed(0, now.Add(1001*time.Millisecond)))
	assert.Same(t, b, all.end("a"))
	assert.False(t, b.lapsed(0, now.Add(time.Hour)), "it is over")
	assert.True(t, b.answered(1, b.asked(1), now, fcall.Reply{Yes: true}, nil), "the vote is too late")
	assert.True(t, b.answered(2, b.asked(2), now, fcall.Reply{}, fcall.ErrUnreachable), "it may have voted")
	assert.False(t, b.gone(0, b.tells(0)))
	assert.False(t, b.gone(1, b.tells(1)))
	assert.True(t, b.gone(2, b.tells(2)))
}

// A vote that comes while the lock is being given back is given back after that.
func TestAVoteThatCrossesAReleaseWaitsForIt(t *testing.T) {
	all, now := newBallots(3), time.Now()
	b := all.open(fcall.Request{Owner: "a", TTL: "1000"})
	before := b.asked(2)
	assert.Same(t, b, all.release("a"))
	assert.False(t, b.answered(2, before, now, fcall.Reply{Yes: true}, nil))
	assert.True(t, b.went())
	assert.False(t, b.went(), "once")
	assert.True(t, b.answered(1, b.asked(1), now, fcall.Reply{Yes: true}, nil))
	assert.True(t, b.unanswered())
	assert.True(t, all.release("unknown here").matters(0))
}

// A request and a giving back can wait for the same connection, and leave in any order: a server that
// has done the giving back can have voted after it, whichever answer is heard of first.
func TestAGivingBackDoesNotCoverWhatIsUnderWay(t *testing.T) {
	now := time.Now()
	for _, heardFirst := range []bool{true, false} {
		b := newBallot("a", 3)
		b.end()
		before, covers := b.asked(0), b.tells(0)
		vote := func() { assert.True(t, b.answered(0, before, now, fcall.Reply{Yes: true}, nil), "once more") }
		if heardFirst {
			vote()
		}
		b.gone(0, covers)
		if !heardFirst {
			vote()
		}
		assert.True(t, b.matters(0), "the vote is heard of first: %v", heardFirst)
		assert.True(t, b.gone(0, b.tells(0)))

		covers = b.tells(0)
		b.answered(0, b.asked(0), now, fcall.Reply{Yes: true}, nil)
		b.gone(0, covers)
		assert.True(t, b.matters(0), "it was asked after that")
	}
}

// Of two requests to a server, the later one was a vote: what the earlier one said, and is heard of
// after that, is older. Else the vote is not given back.
func TestANoThatIsHeardLateIsNotTheLastWord(t *testing.T) {
	b := newBallot("a", 3)
	b.lease = time.Second
	now := time.Now()
	first := b.asked(0)
	second := b.asked(0)
	assert.False(t, b.answered(0, second, now.Add(time.Millisecond), fcall.Reply{Yes: true}, nil))
	assert.False(t, b.answered(0, first, now, fcall.Reply{Holder: "b"}, nil))
	assert.True(t, b.matters(0))
	b.gone(0, b.tells(0))
	assert.False(t, b.matters(0))
	assert.False(t, b.answered(1, b.asked(1), now, fcall.Reply{Holder: "b"}, nil))
	assert.False(t, b.matters(1))
}
