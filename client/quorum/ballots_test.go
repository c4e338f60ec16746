// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"strconv"
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
	all := &ballots{servers: 3, by: map[string]*ballot{}}
	b, _ := all.open(fcall.Call{Owner: "a", TTL: "1000", Guard: "2000", MinHold: "5000"})
	return all, b
}

// The one that makes them many has no votes yet, and is kept all the same.
func TestTheBallotThatMakesThemManyIsKept(t *testing.T) {
	all := &ballots{servers: 3, by: map[string]*ballot{}}
	for i := range many {
		b, _ := all.open(fcall.Call{Owner: strconv.Itoa(i), TTL: "60000"})
		require.Same(t, b, all.find(strconv.Itoa(i), false))
	}
}

func renewal(ttl string) fcall.Call { return fcall.Call{Verb: fcall.Renew, Owner: "a", TTL: ttl} }

func TestAVoteIsAskedForAgainALeaseAfterTheLastYes(t *testing.T) {
	_, b := open3()
	now := time.Now()
	again := func(server int, now time.Time) bool {
		_, may := b.again(server, renewal("1000"), now)
		return may
	}
	require.True(t, b.asks(0))
	b.heard(0, now, b.request, yes)
	require.False(t, again(0, now.Add(time.Second)), "it may have been broken there")
	require.True(t, again(0, now.Add(1001*time.Millisecond)))
	require.True(t, again(1, now), "it never voted")
	b.leaves(0)
	require.False(t, again(0, now.Add(time.Hour)), "it is over")
	require.False(t, b.asks(2))
}

// Waiters of one process share an owner, and may want other leases: a vote is for the lease of the last.
func TestAVoteIsForTheLastLeaseThatWasAskedFor(t *testing.T) {
	all, b := open3()
	same, _ := all.open(fcall.Call{Owner: "a", TTL: "10"})
	require.Same(t, b, same)
	require.Equal(t, "10", b.request.TTL)
	require.Equal(t, time.Second, b.lease, "a server may have the longer one")
}

// A server that comes back keeps what is left of the minimum.
func TestAVoteThatIsAskedForAgainHasTheRestOfTheMinimum(t *testing.T) {
	_, b := open3()
	now := time.Now()
	b.won(now)
	again, _ := b.again(0, renewal("4000"), now.Add(2*time.Second))
	require.Equal(t, "3000", again.MinHold)
	require.Equal(t, "2000", again.Guard)
	require.Equal(t, "4000", again.TTL)
	again, _ = b.again(0, renewal("1000"), now.Add(5*time.Second))
	require.Empty(t, again.MinHold)
}

// A request and a giving back can wait for the same connection, and leave in any order: a server that
// has done the giving back can have voted after it, whichever answer is heard of first.
func TestAGivingBackDoesNotCoverWhatIsUnderWay(t *testing.T) {
	for _, late := range []fcall.Outcome{yes, lost} {
		for _, voteFirst := range []bool{true, false} {
			all, b := open3()
			b.asks(0)
			covers, _ := b.leaves(0)
			if voteFirst {
				b.heard(0, time.Now(), b.request, late)
				b.left(0, covers)
			} else {
				b.left(0, covers)
				require.False(t, b.settle(1))
				b.heard(0, time.Now(), b.request, late)
			}
			require.True(t, b.seats[0].matters(), "the vote is heard of first: %v", voteFirst)
			require.Same(t, b, all.find("a", false))
			covers, _ = b.leaves(0)
			b.left(0, covers)
			require.True(t, b.settle(1))
			require.Empty(t, all.by)
		}
	}
}

// A goroutine can be so late that the lock is given up before it asks. Nobody would take that vote back.
func TestNobodyAsksForAVoteOfAnOwnerOfWhomNothingIsLeft(t *testing.T) {
	_, b := open3()
	require.True(t, b.asks(0))
	require.False(t, b.settle(1), "it is under way")
	require.True(t, b.asks(1))
	b.heard(0, time.Now(), b.request, no)
	b.heard(1, time.Now(), b.request, no)
	require.True(t, b.settle(1))
	require.False(t, b.asks(2))
}

// A call that was given up can end when the next one of its owner has begun: that one asks all the same.
func TestACallThatWasGivenUpDoesNotEndTheNext(t *testing.T) {
	all, b := open3()
	next, nth := all.open(b.request)
	require.Same(t, b, next)
	require.False(t, b.settle(nth-1))
	require.True(t, b.asks(0))
	b.heard(0, time.Now(), b.request, no)
	require.True(t, b.settle(nth))
}

// Of two requests to a server, the later one was a vote: what the earlier one said, and is heard of
// after that, is older. Else the vote is not given back.
func TestANoThatIsHeardLateIsNotTheLastWord(t *testing.T) {
	_, b := open3()
	b.asks(0)
	b.asks(0)
	b.heard(0, time.Now(), b.request, yes)
	b.heard(0, time.Now(), b.request, no)
	require.True(t, b.seats[0].matters())
	b.asks(1)
	require.True(t, b.seats[1].matters(), "it is under way")
	b.heard(1, time.Now(), b.request, no)
	require.False(t, b.seats[1].matters())
}

func TestBackoff(t *testing.T) {
	r, now := rivals{by: map[string]rival{}}, time.Now()
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
	r.beaten("k")
	require.LessOrEqual(t, r.again("k", 0), 2*firstBackoff)
	require.True(t, r.near("k", now.Add(lately-1)))
	require.False(t, r.near("k", now.Add(lately)))
	require.False(t, r.near("other", now))
}
