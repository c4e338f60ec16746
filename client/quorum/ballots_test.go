package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/stretchr/testify/require"
)

var (
	yes  = fcall.Outcome{Reply: fcall.Reply{Yes: true}}
	no   = fcall.Outcome{Reply: fcall.Reply{Holder: "b"}}
	lost = fcall.Outcome{Err: fcall.ErrUnreachable}
)

func open3() (*ballots, *ballot) {
	all := &ballots{by: map[string]*ballot{}}
	return all, all.open(fcall.Call{Owner: "a", TTL: "1000", Guard: "2000", MinHold: "5000"}, 3)
}

func TestAVoteIsAskedForAgainALeaseAfterTheLastYes(t *testing.T) {
	_, b := open3()
	now := time.Now()
	require.True(t, b.asks(0))
	b.answered(0, now, yes)
	require.False(t, b.lapsed(0, now.Add(time.Second)), "it may have been broken there")
	require.True(t, b.lapsed(0, now.Add(1001*time.Millisecond)))
	require.True(t, b.lapsed(1, now), "it never voted")
	b.leaves(0)
	require.False(t, b.lapsed(0, now.Add(time.Hour)), "it is over")
	require.False(t, b.asks(2))
}

// A server that comes back keeps what is left of the minimum.
func TestAVoteThatIsAskedForAgainHasTheRestOfTheMinimum(t *testing.T) {
	_, b := open3()
	now := time.Now()
	b.won(now)
	again := b.again("4000", now.Add(2*time.Second))
	require.Equal(t, "3000", again.MinHold)
	require.Equal(t, "2000", again.Guard)
	require.Equal(t, "4000", again.TTL)
	require.Empty(t, b.again("1000", now.Add(5*time.Second)).MinHold)
}

// A request and a giving back can wait for the same connection, and leave in any order: a server that
// has done the giving back can have voted after it, whichever answer is heard of first.
func TestAGivingBackDoesNotCoverWhatIsUnderWay(t *testing.T) {
	for _, late := range []fcall.Outcome{yes, lost} {
		for _, voteFirst := range []bool{true, false} {
			all, b := open3()
			b.asks(0)
			covers := b.leaves(0)
			if voteFirst {
				b.answered(0, time.Now(), late)
				b.left(0, covers)
			} else {
				b.left(0, covers)
				require.False(t, all.settle("a", b))
				b.answered(0, time.Now(), late)
			}
			require.True(t, b.matters(0), "the vote is heard of first: %v", voteFirst)
			require.Same(t, b, all.find("a"))
			b.left(0, b.leaves(0))
			require.True(t, all.settle("a", b))
			require.Nil(t, all.find("a"))
		}
	}
}

// A goroutine can be so late that the lock is given up before it asks. Nobody would take that vote back.
func TestNobodyAsksForAVoteOfAnOwnerOfWhomNothingIsLeft(t *testing.T) {
	all, b := open3()
	require.True(t, b.asks(0))
	require.False(t, all.settle("a", b), "it is under way")
	require.True(t, b.asks(1))
	b.answered(0, time.Now(), no)
	b.answered(1, time.Now(), no)
	require.True(t, all.settle("a", b))
	require.False(t, b.asks(2))
}

// Of two requests to a server, the later one was a vote: what the earlier one said, and is heard of
// after that, is older. Else the vote is not given back.
func TestANoThatIsHeardLateIsNotTheLastWord(t *testing.T) {
	_, b := open3()
	b.asks(0)
	b.asks(0)
	b.answered(0, time.Now(), yes)
	b.answered(0, time.Now(), no)
	require.True(t, b.matters(0))
	b.asks(1)
	require.True(t, b.matters(1), "it is under way")
	b.answered(1, time.Now(), no)
	require.False(t, b.matters(1))
}

func TestBackoff(t *testing.T) {
	r, now := rivals{by: map[string]*rival{}}, time.Now()
	require.True(t, r.met("k", "a", now))
	require.True(t, r.met("k", "a", now.Add(believed-1)))
	require.False(t, r.met("k", "a", now.Add(believed)), "one server has said so for long")
	for range 20 {
		r.met("k", "a", now)
	}
	require.Equal(t, lastBackoff, r.by["k"].backoff)
	require.GreaterOrEqual(t, r.again("k", 0), lastBackoff/2)
	require.Less(t, r.again("k", time.Millisecond), 6*time.Millisecond, "the lease ends")
	require.True(t, r.met("k", "b", now), "the lock moves")
	require.Equal(t, lastBackoff/2, r.by["k"].backoff)
	r.gone("k")
	require.LessOrEqual(t, r.again("k", 0), 2*firstBackoff)
}
