package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A renewal that crosses with a lingering can make the server keep the lock for less: it is asked
// again, for what is left. Nothing else is renewed once the server keeps it.
func TestARenewalCrossesWithALingering(t *testing.T) {
	crossed := func() Lease {
		l := New(minute, start)
		require.Equal(t, Renew, l.Step(at(20*time.Second)))
		l.Leave(at(20 * time.Second))
		require.True(t, l.Linger(at(20*time.Second), at(time.Hour)))
		require.Greater(t, l.Length(), time.Hour-20*time.Second)
		l.Lingers(at(20 * time.Second))
		return l
	}
	rest := func(l Lease, now time.Time) {
		for ; now.Before(at(time.Hour)); now = now.Add(time.Second) {
			switch action := l.Step(now); action {
			case None:
			case Look:
				l.Looked()
			default:
				t.Fatalf("%v: %d is due", now.Sub(start), action)
			}
		}
		require.Equal(t, GiveBack, l.Step(now))
	}
	answered := crossed()
	answered.Renewed(at(20 * time.Second))
	require.True(t, answered.Until().Before(at(81*time.Second)), "this one may have been the last")
	require.Equal(t, Renew, answered.Step(at(40*time.Second)))
	require.Equal(t, Kept(time.Hour-40*time.Second), answered.Length())
	answered.Renewed(at(40 * time.Second))
	rest(answered, at(41*time.Second))

	failed := crossed()
	failed.Failed(Renew, at(30*time.Second))
	tries := 0
	for now := failed.Due(); now.Before(at(time.Hour)); now = failed.Due() {
		switch action := failed.Step(now); action {
		case Renew:
			tries++
			failed.Renewed(now) // it can come yet, after any of these
		case Look:
			failed.Looked()
		}
	}
	require.InDelta(t, 180, tries, 5)
	require.Equal(t, GiveBack, failed.Step(at(time.Hour)))
}

// What the server is known to keep it for decides when it is asked again.
func TestALingeringIsRenewedBeforeTheServersLeaseEnds(t *testing.T) {
	known := map[string]func() (l Lease, release, until time.Time){
		"handed over": func() (Lease, time.Time, time.Time) {
			return Provisional(minute, start, at(1800*time.Millisecond)), at(time.Millisecond), at(1800 * time.Millisecond)
		},
		"soon to be renewed": func() (Lease, time.Time, time.Time) {
			l := New(minute, start)
			return l, at(19 * time.Second), l.Until()
		},
		"a longer one that was not confirmed": func() (Lease, time.Time, time.Time) {
			l := New(minute, start)
			require.True(t, l.Extend(at(time.Second), time.Hour))
			l.ExtendFailed(at(time.Second), time.Hour)
			return l, at(2 * time.Second), l.Until()
		},
		"not renewed": func() (Lease, time.Time, time.Time) {
			l := New(&Terms{Length: time.Minute}, start)
			return l, at(50 * time.Second), l.Until()
		},
	}
	for name, make := range known {
		l, now, until := make()
		l.Leave(now)
		require.True(t, l.Linger(now, at(time.Hour)), name)
		l.LingerFailed(now.Add(100 * time.Millisecond))
		last := now
		for now = l.Due(); now.Before(until); now = l.Due() {
			last = now
			switch action := l.Step(now); action {
			case Renew:
				l.Failed(Renew, now.Add(time.Millisecond))
			case Look:
				l.Looked()
			}
		}
		require.Less(t, until.Sub(last), 20*time.Millisecond, "%s: the last try before the end", name)
		require.Equal(t, Renew, l.Step(now))
		l.Renewed(now)
		require.False(t, l.Until().Before(at(time.Minute)), name)
	}
}

// An answer to a renewal by hand does not end those of a lease that lingers.
func TestALingeringCrossesWithARenewalByHand(t *testing.T) {
	l := New(&Terms{Length: time.Minute}, start)
	require.True(t, l.Extend(at(time.Second), time.Minute))
	l.Leave(at(time.Second))
	require.True(t, l.Linger(at(time.Second), at(time.Hour)))
	l.LingerFailed(at(1100 * time.Millisecond))
	l.Extended(at(time.Second), time.Minute)
	now := l.Due()
	for ; l.Step(now) != Renew; now = l.Due() {
		l.Looked()
	}
	require.True(t, now.Before(at(time.Minute)))
}

// The shorter lease of a renewal counts that the server may have done after the lingering.
func TestALingeringIsRenewedWhoeverCrossedIt(t *testing.T) {
	const byHand = "one by hand that fails"
	crossings := map[string]func(l *Lease){
		byHand:                                func(l *Lease) { l.Lingers(at(time.Second)); l.ExtendFailed(at(time.Second), time.Minute) },
		"one that was done last":              func(l *Lease) { l.Lingers(at(time.Second)); l.Renewed(at(time.Second)) },
		"and was answered before the Release": func(l *Lease) { l.Renewed(at(time.Second)); l.Lingers(at(time.Second)) },
	}
	for name, cross := range crossings {
		l := New(&Terms{Length: time.Minute, RenewEvery: time.Second}, start)
		if name == byHand {
			require.True(t, l.Extend(at(time.Second), time.Minute))
		} else {
			require.Equal(t, Renew, l.Step(at(time.Second)), name)
		}
		l.Leave(at(time.Second))
		require.True(t, l.Linger(at(time.Second), at(time.Hour)))
		cross(&l)
		now := l.Due()
		for ; now.Before(at(time.Minute)) && l.Step(now) != Renew; now = l.Due() {
			l.Looked()
		}
		require.True(t, now.Before(at(time.Minute)), "%s: renewed after %v", name, now.Sub(start))
	}
}

// A process that ends while a lock lingers does not keep it from others for longer than MinHold.
func TestALingeringAsksForNoMoreThanIsLeft(t *testing.T) {
	l := New(minute, start)
	l.Leave(start)
	require.True(t, l.Linger(start, at(9*time.Second)))
	require.Equal(t, Kept(9*time.Second), l.Length())
	l.Lingers(start)
	require.False(t, l.Until().Before(at(9*time.Second)))
	require.Equal(t, Look, l.Step(at(8*time.Second)))
	l.Looked()
	require.Equal(t, GiveBack, l.Step(at(9*time.Second)))
}

// Nobody works under a lease that lingers: an outage does not end it before its time, which would let
// others in.
func TestALingeringSurvivesAnOutage(t *testing.T) {
	l := New(&Terms{Length: 10 * time.Millisecond, RenewEvery: 3 * time.Millisecond}, start)
	l.Leave(start)
	require.True(t, l.Linger(start, at(time.Minute)))
	tries := 0
	for now := l.Due(); now.Before(at(time.Minute)); now = l.Due() {
		require.Equal(t, Renew, l.Step(now))
		tries++
		l.Failed(Renew, now.Add(time.Millisecond))
	}
	require.Less(t, tries, 25, "a silent server is not asked all the time")
	require.Equal(t, GiveBack, l.Step(at(time.Minute)))
}

// A lock that is kept from others for longer than it was held.
func TestLinger(t *testing.T) {
	l := New(&Terms{Length: 10 * time.Second}, start)
	require.False(t, l.Linger(at(time.Second), at(time.Minute)), "it is still held")
	require.True(t, l.Leave(at(time.Second)))
	require.True(t, l.Linger(at(time.Second), at(time.Minute)))
	require.False(t, l.Join(at(time.Second)))
	kept := l
	kept.Lingers(at(time.Second))
	require.Equal(t, Look, kept.Step(at(2*time.Second)), "those who wait here hear of a break")
	kept.Looked()
	require.Equal(t, None, kept.Step(at(20*time.Second)), "the server keeps it")
	require.Equal(t, GiveBack, kept.Step(at(time.Minute)))
	// there was no answer: it is renewed
	for now := at(time.Second); now.Before(at(time.Minute)); now = l.Due() {
		for action := l.Step(now); action != None; action = l.Step(now) {
			switch action {
			case Look:
				l.Looked()
			case Renew:
				l.Renewed(now)
			default:
				t.Fatalf("%d at %v", action, now.Sub(start))
			}
		}
	}
	require.Equal(t, GiveBack, l.Step(at(time.Minute)))
}
