// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

var (
	start  = time.Unix(1_800_000_000, 0)
	minute = &Terms{Length: time.Minute, RenewEvery: 20 * time.Second, Grace: 5 * time.Second}
)

func at(d time.Duration) time.Time { return start.Add(d) }

// suspended is t after the machine was suspended for d: the wall clock went on, the monotonic one
// stood still. Package time has no way to make one: bits 30 to 62 of the first word are wall seconds.
func suspended(t time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(d/time.Second) << 30
	return t
}

func TestPastByEitherClock(t *testing.T) {
	now := time.Now()
	require.False(t, Past(now, now.Add(1)))
	require.True(t, Past(now, now))
	woken := suspended(now, time.Hour)
	require.Zero(t, woken.Sub(now), "by the monotonic clock")
	require.True(t, Past(woken, now.Add(time.Minute)), "by the wall clock")
	set := suspended(now, -time.Hour).Add(time.Minute) // or somebody set it back
	require.True(t, Past(set, now.Add(time.Second)), "by the monotonic clock")
}

func TestTheDeadlineHasAMargin(t *testing.T) {
	require.Equal(t, 602*time.Millisecond, Margin(time.Minute))
	require.Equal(t, at(time.Minute-602*time.Millisecond), Deadline(start, time.Minute))
	l := New(minute, start)
	require.True(t, l.Working(Deadline(start, time.Minute).Add(-1)))
	require.False(t, l.Working(Deadline(start, time.Minute)))
}

// An answer that comes late counts, but not against less that was asked for since.
func TestALateAnswer(t *testing.T) {
	l := New(minute, start)
	l.lookAt = time.Time{}
	require.Equal(t, Renew, l.Step(at(20*time.Second)))
	l.Failed(at(30 * time.Second))
	l.Late(at(20*time.Second), time.Minute)
	require.Equal(t, Deadline(at(20*time.Second), time.Minute), l.Until())
	require.Equal(t, at(40*time.Second), l.Due(), "it need not be asked again")
	require.Equal(t, Renew, l.Step(at(40*time.Second)))
	l.Failed(at(50 * time.Second))
	_, ok := l.Extend(at(51*time.Second), 10*time.Second)
	require.True(t, ok)
	l.Late(at(40*time.Second), time.Minute)
	require.Equal(t, Deadline(at(51*time.Second), 10*time.Second), l.Until())
}

// What is due, and when, in the life of a lease that is renewed.
func TestALifeOfRenewals(t *testing.T) {
	l := New(minute, start)
	require.Equal(t, at(time.Second), l.Due(), "a lock that is held for a second is made known to tracking")
	require.Equal(t, None, l.Step(at(999*time.Millisecond)))
	require.Equal(t, Look, l.Step(at(time.Second)))
	require.Equal(t, None, l.Step(at(time.Second)), "it is under way")
	l.Looked(true)
	require.Equal(t, at(20*time.Second), l.Due())
	require.Equal(t, Renew, l.Step(at(20*time.Second)))
	l.Failed(at(25 * time.Second))
	require.Equal(t, at(28*time.Second), l.Due(), "a twentieth of the lease later")
	require.Equal(t, Renew, l.Step(at(28*time.Second)))
	l.Renewed(at(28 * time.Second))
	require.Equal(t, Deadline(at(28*time.Second), time.Minute), l.Until())
	require.Equal(t, at(48*time.Second), l.Due())
	require.Equal(t, Renew, l.Step(at(48*time.Second)))
	require.Equal(t, l.Until(), l.Due(), "while no answer comes, the deadline is due")
	require.Equal(t, None, l.Step(l.Until().Add(-1)))
	require.Equal(t, Expire, l.Step(l.Until()))
	require.Equal(t, at(108*time.Second), l.Latest(), "the server may have it until then")
}

func TestAProvisionalLeaseIsConfirmed(t *testing.T) {
	terms := &Terms{Length: time.Minute, RenewEvery: 20 * time.Second, MaxRenewals: 1, Grace: time.Second}
	l := Provisional(terms, start, at(1800*time.Millisecond))
	require.Equal(t, at(600*time.Millisecond), l.Due())
	require.Equal(t, Renew, l.Step(at(600*time.Millisecond)))
	l.Renewed(at(600 * time.Millisecond))
	require.Equal(t, Renew, l.Step(at(20600*time.Millisecond)), "the confirmation does not count")
	l.Renewed(at(20600 * time.Millisecond))
	require.Equal(t, StopMaxRenewals, l.Step(at(40600*time.Millisecond)))
	require.False(t, l.Working(at(41*time.Second)))
	require.Equal(t, at(41600*time.Millisecond), l.Due(), "the grace is over")
}

// Another length changes the schedule: a shorter one at once, a longer one when it is confirmed.
func TestTheScheduleAfterAnotherLength(t *testing.T) {
	l := New(&Terms{Length: time.Minute, RenewEvery: 20 * time.Second, MaxRenewals: 1}, start)
	for range 3 { // by hand: they do not count
		_, ok := l.Extend(start, 9*time.Second)
		require.True(t, ok)
		require.Equal(t, 9*time.Second, l.Length())
		require.Equal(t, Deadline(start, 9*time.Second), l.Until())
		l.Failed(start) // the caller tries again: nothing changes
		require.Equal(t, at(time.Second), l.Due(), "the look")
	}
	require.Equal(t, Look, l.Step(at(time.Second)))
	require.Equal(t, at(3*time.Second), l.Due(), "a third of it")
	_, ok := l.Extend(at(2*time.Second), 10*time.Minute)
	require.True(t, ok)
	require.Equal(t, 9*time.Second, l.Length())
	l.Renewed(at(2 * time.Second))
	require.Equal(t, 10*time.Minute, l.Length())
	require.Equal(t, at(22*time.Second), l.Due(), "no more seldom than was agreed")
	length, ok := l.Extend(at(3*time.Second), 0)
	require.True(t, ok)
	require.Equal(t, 10*time.Minute, length, "for as long as the last one")
}

// Looks are reads: they change no schedule, and are a tenth of a second apart.
func TestLooks(t *testing.T) {
	l := New(&Terms{Length: time.Minute}, start)
	require.Equal(t, Look, l.Step(at(time.Second)))
	l.Noticed(at(time.Second))
	require.Equal(t, None, l.Step(at(2*time.Second)), "one at a time")
	l.Looked(true)
	require.Equal(t, Look, l.Step(at(2*time.Second)), "the one that was asked for meanwhile")
	l.Looked(true)
	require.Equal(t, l.Until(), l.Due())
	l.Noticed(at(2050 * time.Millisecond))
	require.Equal(t, at(2100*time.Millisecond), l.Due())
	require.Equal(t, Look, l.Step(at(2100*time.Millisecond)))
	l.Looked(false)
	require.Equal(t, Verify, l.Step(at(2100*time.Millisecond)), "it found another holder")
	until := l.Until()
	l.Renewed(at(2100 * time.Millisecond))
	require.Equal(t, until, l.Until(), "nothing was prolonged")
	require.Equal(t, None, l.Step(at(2100*time.Millisecond)), "it is verified once")
}

// A verification prolongs nothing, so the next renewal stays where it is.
func TestAVerificationMovesNoRenewal(t *testing.T) {
	l := New(minute, start)
	l.Noticed(at(19 * time.Second))
	require.Equal(t, Look, l.Step(at(19*time.Second)))
	l.Looked(false)
	require.Equal(t, Verify, l.Step(at(19*time.Second)))
	l.Renewed(at(19 * time.Second))
	require.Equal(t, Renew, l.Step(at(20*time.Second)))
}

// Until a look is answered nobody tells of a break: not for long, however long the lease is.
func TestLooksThatFail(t *testing.T) {
	l := New(&Terms{Length: time.Hour}, start)
	require.Equal(t, Look, l.Step(at(time.Second)))
	l.LookFailed(at(time.Second))
	require.Equal(t, Look, l.Step(at(3*time.Second)))
	l.Looked(false)
	require.Equal(t, Verify, l.Step(at(3*time.Second)))
	l.Failed(at(3 * time.Second))
	require.Equal(t, Look, l.Step(at(5*time.Second)))
}

// A renewal does what a look does, but for news that came after it was sent: it can have been before the change.
func TestNewsDuringARenewal(t *testing.T) {
	l := New(&Terms{Length: time.Minute, RenewEvery: 20 * time.Second}, start)
	l.Noticed(at(19*time.Second + 990*time.Millisecond))
	require.Equal(t, Look, l.Step(at(19*time.Second+990*time.Millisecond)))
	l.Looked(true)
	l.Noticed(at(19*time.Second + 995*time.Millisecond)) // is looked at 0.1 s after the last look
	require.Equal(t, Renew, l.Step(at(20*time.Second)))
	l.Renewed(at(20 * time.Second))
	require.Equal(t, at(40*time.Second), l.Due(), "it was before the renewal")
	require.Equal(t, Renew, l.Step(at(40*time.Second)))
	l.Noticed(at(41 * time.Second))
	l.Renewed(at(40 * time.Second))
	require.Equal(t, Look, l.Step(at(41*time.Second)))
}

func TestPass(t *testing.T) {
	l := New(minute, start)
	require.False(t, l.Pass(l.Until()), "it is over")
	require.True(t, l.Pass(at(4)))
}

// A lock that was handed over is good for two seconds only, so its renewal that fails is sent again before they
// are over, however long the lease is.
func TestAHandedOverLockIsAskedForAgain(t *testing.T) {
	terms, now := &Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second}, time.Now()
	l := Provisional(terms, now, now.Add(Handover-Margin(Handover)))
	for range 3 {
		at := l.Due()
		require.Equal(t, Renew, l.Step(at))
		l.Failed(at)
	}
}

// The renewals of a server whose answers are late count too.
func TestLateRenewalsCount(t *testing.T) {
	terms, now := &Terms{Length: 30 * time.Second, RenewEvery: 10 * time.Second, MaxRenewals: 2}, time.Now()
	l := New(terms, now)
	for renewals := 0; ; {
		switch at := l.Due(); l.Step(at) {
		case Renew:
			l.Failed(at.Add(5 * time.Second))
			l.Late(at, l.Length())
			renewals++
			require.LessOrEqual(t, renewals, 2)
		case StopMaxRenewals:
			require.Equal(t, 2, renewals)
			return
		case Look:
			l.Looked(true)
		default:
			t.Fatal(l.State())
		}
	}
}

// After the machine was suspended, less is left by the wall clock than by the monotonic one: a shorter lease
// that is asked for then must not end later than what the server has promised, or a lost answer leaves a
// holder who counts on more.
func TestAShorterLeaseAfterASuspension(t *testing.T) {
	now := time.Now()
	l := New(minute, now)
	wall := l.Until().Round(0)
	woken := suspended(now.Add(time.Second), 50*time.Second) // 51 s of 60 s have passed
	_, ok := l.Extend(woken, 30*time.Second)
	require.True(t, ok)
	require.False(t, l.Until().Round(0).After(wall), "the server has promised no more than %v yet; it counts on %v", wall, l.Until().Round(0))
	l.Failed(woken)
	require.False(t, l.Working(suspended(now.Add(12*time.Second), 50*time.Second)), "62 s after a lease of 60 s began")
}

// A machine that was suspended, and woke up in time, renews in time, and ends the work before the lease is
// over: timers go by the monotonic clock, by which more is left.
func TestWhatIsDueAfterASuspension(t *testing.T) {
	for _, terms := range []*Terms{minute, {Length: time.Minute}} {
		now := time.Now()
		l := New(terms, now)
		woken := suspended(now.Add(2*time.Second), 50*time.Second) // 52 s of 60 s have passed
		for l.Step(woken) != None {
		}
		left := l.Until().Round(0).Sub(woken.Round(0))
		require.LessOrEqual(t, left, 8*time.Second)
		require.LessOrEqual(t, l.Due().Sub(woken), left, "the scheduler looks at it when it is over")
		require.Equal(t, terms.RenewEvery > 0, l.Asking(), "a renewal was due 32 s ago")
	}
}
