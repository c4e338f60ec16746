package lease

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	start  = time.Unix(1_800_000_000, 0)
	minute = &Terms{Length: time.Minute, RenewEvery: 20 * time.Second, Grace: 5 * time.Second}
)

func at(d time.Duration) time.Time { return start.Add(d) }

// The table is the machine: each state is left only by the events that are listed here.
func TestTransitions(t *testing.T) {
	type move struct {
		from State
		by   event
		to   State
	}
	moves := []move{
		{Confirming, confirmed, Held}, {Confirming, refused, Refused}, {Confirming, limited, Stopping},
		{Confirming, expired, GivingBack}, {Confirming, givenUp, GivingBack}, {Confirming, abandoned, Left},
		{Held, refused, Refused}, {Held, limited, Stopping}, {Held, expired, GivingBack}, {Held, givenUp, GivingBack},
		{Held, abandoned, Left},
		{Stopping, refused, Refused}, {Stopping, expired, GivingBack}, {Stopping, givenUp, GivingBack}, {Stopping, abandoned, Left},
		{Refused, expired, Denied}, {Refused, abandoned, Left},
		{GivingBack, givenBack, Released}, {GivingBack, denied, Denied}, {GivingBack, lapsed, Released},
		{Denied, givenBack, Released}, {Denied, lapsed, Released}, {Denied, abandoned, Left},
	}
	for from := range State(len(transitions)) {
		for by := range events {
			want := from
			for _, m := range moves {
				if m.from == from && m.by == by {
					want = m.to
				}
			}
			l := Lease{state: from}
			l.move(by)
			require.Equal(t, want, l.state, "%v, event %d", from, by)
		}
	}
}

// What is due, and when, in the life of a lease that is renewed.
func TestALifeOfRenewals(t *testing.T) {
	l := New(minute, start)
	require.Equal(t, at(time.Second), l.Due(), "a lock that is held for a second is made known to tracking")
	require.Equal(t, None, l.Step(at(999*time.Millisecond)))
	require.Equal(t, Renew, l.Step(at(time.Second)))
	require.Equal(t, None, l.Step(at(time.Second)), "it is under way")
	l.Renewed(at(time.Second))
	require.Equal(t, at(time.Second).Add(time.Minute-602*time.Millisecond), l.Until())
	require.Equal(t, at(20*time.Second), l.Due(), "that changes no schedule")
	require.Equal(t, Renew, l.Step(at(20*time.Second)))
	l.Failed(Renew, at(25*time.Second))
	require.Equal(t, at(28*time.Second), l.Due(), "a twentieth of the lease later")
	require.Equal(t, Renew, l.Step(at(28*time.Second)))
	require.Equal(t, l.Until(), l.Due(), "while no answer comes, the deadline is due")
	require.Equal(t, None, l.Step(l.Until().Add(-1)))
	require.Equal(t, Expire, l.Step(l.Until()))
	require.Equal(t, GivingBack, l.State())
	l.Renewed(at(28 * time.Second))
	require.Equal(t, GivingBack, l.State(), "an answer does not revive it")
	require.Equal(t, GiveBack, l.Step(l.Until()))
	require.Equal(t, at(28*time.Second).Add(time.Minute), l.Due(), "the server's lease can last until then")
	l.Failed(GiveBack, l.Until())
	require.Equal(t, l.Until().Add(5*time.Millisecond), l.Due())
	require.Equal(t, None, l.Step(at(88*time.Second)))
	require.True(t, l.Done())
	require.Zero(t, l.Due())
}

func TestAProvisionalLeaseIsConfirmed(t *testing.T) {
	terms := &Terms{Length: time.Minute, RenewEvery: 20 * time.Second, MaxRenewals: 1, Grace: time.Second}
	l := Provisional(terms, start, at(1800*time.Millisecond))
	require.Equal(t, at(600*time.Millisecond), l.Due())
	require.Equal(t, Renew, l.Step(at(600*time.Millisecond)))
	l.Renewed(at(600 * time.Millisecond))
	require.Equal(t, Held, l.State())
	require.Equal(t, Renew, l.Step(at(20600*time.Millisecond)), "the confirmation was no renewal that counts")
	l.Renewed(at(20600 * time.Millisecond))
	require.Equal(t, StopMaxRenewals, l.Step(at(40600*time.Millisecond)))
	require.Equal(t, Stopping, l.State())
	require.True(t, l.Ours(at(41*time.Second)))
	require.False(t, l.Working(at(41*time.Second)))
	require.Equal(t, GiveBack, l.Step(at(41600*time.Millisecond)), "the grace is over")
}

// A look changes no schedule, and one that falls into a renewal is not lost.
func TestLooks(t *testing.T) {
	terms := &Terms{Length: time.Minute, RenewEvery: 20 * time.Second, MaxRenewals: 1, Grace: time.Second}
	l := New(terms, start)
	for i := range 10 {
		now := at(time.Duration(i+2) * time.Second)
		l.Noticed(now)
		require.Equal(t, Renew, l.Step(now))
		l.Renewed(now)
	}
	require.Equal(t, at(20*time.Second), l.Due())
	require.Equal(t, Renew, l.Step(at(20*time.Second)))
	l.Noticed(at(20 * time.Second))
	require.Equal(t, None, l.Step(at(20*time.Second)))
	l.Renewed(at(20 * time.Second))
	require.Equal(t, Renew, l.Step(at(20*time.Second)), "the look")
	l.Renewed(at(20 * time.Second))
	require.Equal(t, StopMaxRenewals, l.Step(at(40*time.Second)))

	still := New(&Terms{Length: time.Minute}, start)
	require.Equal(t, Look, still.Step(at(time.Second)), "a lock that is not renewed is looked at without renewing it")
	still.Looked()
	require.Equal(t, still.Until(), still.Due())
	still.Noticed(at(1050 * time.Millisecond))
	require.Equal(t, at(1100*time.Millisecond), still.Due(), "looks are a tenth of a second apart")
}

func TestMaxHold(t *testing.T) {
	terms := &Terms{Length: time.Minute, RenewEvery: 20 * time.Second, MaxHold: 10 * time.Second, Grace: 30 * time.Second}
	l := New(terms, start)
	require.Equal(t, Renew, l.Step(at(time.Second)))
	l.Renewed(at(time.Second))
	require.Equal(t, StopMaxHold, l.Step(at(10*time.Second)))
	require.Equal(t, Renew, l.Step(at(20*time.Second)), "the grace is under the lease too")
	l.Renewed(at(20 * time.Second))
	require.Equal(t, GiveBack, l.Step(at(40*time.Second)))
	l.GaveBack()
	require.Equal(t, Released, l.State())
}

func TestHolders(t *testing.T) {
	l := New(minute, start)
	require.True(t, l.Join(at(1)))
	require.False(t, l.Leave(start))
	require.False(t, l.Pass(at(2), time.Second), "somebody works under it")
	require.True(t, l.Leave(start))
	require.False(t, l.Join(at(3)), "it was released")
	require.False(t, l.Pass(l.Until().Add(-time.Second+1), time.Second), "too little is left")
	require.True(t, l.Pass(at(4), time.Second))
	require.True(t, l.Leave(start))
	require.True(t, l.GiveUp())
	require.False(t, l.GiveUp(), "somebody is at it")
	require.False(t, l.Pass(at(5), time.Second))
	require.Equal(t, at(time.Minute), l.Due())
	l.Retry(at(time.Second))
	require.Equal(t, GiveBack, l.Step(at(time.Second)))
}

// A shorter lease counts from before it is asked for, a longer one from when it is granted.
func TestAnotherLength(t *testing.T) {
	l := New(minute, start)
	require.True(t, l.Extend(at(0), 10*time.Second))
	require.Equal(t, Deadline(start, 10*time.Second), l.Until())
	l.Extended(at(0), 10*time.Second)
	require.Equal(t, Deadline(start, 10*time.Second), l.Until())
	require.False(t, l.Due().After(at(10*time.Second/3)), "renewals follow")
	require.True(t, l.Extend(at(time.Second), time.Hour))
	require.Equal(t, Deadline(start, 10*time.Second), l.Until(), "not granted yet")
	l.Extended(at(time.Second), time.Hour)
	require.Equal(t, Deadline(at(time.Second), time.Hour), l.Until())
}

// A renewal that is under way, or was given up, can be granted after one for a longer lease.
func TestALongerLeaseIsNotBelievedBesideAShorterOne(t *testing.T) {
	l := New(minute, start)
	require.Equal(t, Renew, l.Step(at(time.Second)))
	require.True(t, l.Extend(at(2*time.Second), time.Hour))
	l.Renewed(at(time.Second))
	require.Equal(t, Deadline(at(time.Second), time.Minute), l.Until())
	l.Extended(at(2*time.Second), time.Hour)
	require.Equal(t, Deadline(at(2*time.Second), time.Minute), l.Until())

	l = New(minute, start)
	require.True(t, l.Extend(at(0), 2*time.Minute))
	require.True(t, l.Extend(at(0), time.Hour))
	l.Extended(at(0), 2*time.Minute)
	require.Equal(t, Deadline(start, 2*time.Minute), l.Until(), "the answer to the shorter one")
}

// The monotonic clock of a suspended machine stands still, its wall clock does not.
func TestOverByEitherClock(t *testing.T) {
	now := time.Now()
	require.False(t, Over(now, now.Add(time.Second)))
	require.True(t, Over(now, now))
	require.True(t, Over(now.Add(time.Hour).Round(0), now.Add(time.Minute)), "by the wall clock")
	require.True(t, Over(now.Add(time.Minute), now.Add(time.Second)))
}

// Random inputs at random times. Two things hold at each step: nobody works past the deadline, and
// a lease that is not done is due at some time. No Step leaves a time that is due behind.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(20_000) {
		live(t, rand.New(rand.NewPCG(seed, 1)), seed)
	}
}

func live(t *testing.T, r *rand.Rand, seed uint64) {
	span := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d) + 1)) }
	terms := &Terms{Length: 10*time.Millisecond + span(time.Minute), Grace: span(time.Second)}
	if r.IntN(4) > 0 {
		terms.RenewEvery = 1 + span(terms.Length*4/5-2*time.Millisecond)
	}
	if r.IntN(3) == 0 {
		terms.MaxRenewals = 1 + r.IntN(3)
	}
	if r.IntN(3) == 0 {
		terms.MaxHold = 1 + span(2*terms.Length)
	}
	now := start
	l := New(terms, now)
	if r.IntN(2) == 0 {
		l = Provisional(terms, now, now.Add(1+span(2*time.Second)))
	}
	var sent [4]time.Time // of what is under way, by action
	ended := false
	for range 60 {
		if !l.Done() {
			require.False(t, l.Due().IsZero(), "seed %d: %v is never due", seed, l.state)
			if r.IntN(2) == 0 && l.Due().After(now) {
				now = l.Due()
			}
		}
		now = now.Add(span(terms.Length / 4))
		for action := l.Step(now); action != None; action = l.Step(now) {
			switch action {
			case Expire, StopMaxHold, StopMaxRenewals:
				require.False(t, ended && action != Expire, "seed %d: work ends once", seed)
				ended = true
			default:
				require.True(t, sent[action].IsZero() || action == GiveBack, "seed %d: one %d at a time", seed, action)
				sent[action] = now
			}
		}
		require.False(t, l.Working(now) && !now.Before(l.until), "seed %d", seed)
		require.False(t, l.Working(now) && ended, "seed %d: work goes on after its end", seed)
		if !l.Done() {
			require.True(t, l.Due().After(now), "seed %d: %v is due at %v, but not done", seed, l.state, l.Due().Sub(now))
		}
		before := l.state
		switch action := Action(1 + r.IntN(3)); {
		case !sent[action].IsZero():
			switch r.IntN(4) {
			case 0:
				l.Failed(action, now)
			case 1:
				if action == GiveBack {
					l.Denied(now)
				} else if r.IntN(4) == 0 {
					l.Refused(now, now)
				} else {
					continue
				}
			default:
				switch action {
				case Renew:
					l.Renewed(sent[action])
				case Look:
					l.Looked()
				case GiveBack:
					l.GaveBack()
				}
			}
			sent[action] = time.Time{}
		case r.IntN(3) == 0:
			l.Noticed(now)
		case r.IntN(10) == 0 && l.holders > 0:
			if l.Join(now) {
				l.Leave(now)
			}
			if l.Leave(now) && !l.Pass(now, terms.Length/4) && l.GiveUp() {
				sent[GiveBack] = now
			}
		}
		require.False(t, before == Left && l.state != Left || before == Released && l.state != Released, "seed %d", seed)
	}
}
