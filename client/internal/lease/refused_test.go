package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Who refuses a lease may not be the server that granted it. That one keeps others out until the
// holder has left, and is told then.
func TestARefusedLeaseIsGivenBackWhenItsHolderHasLeft(t *testing.T) {
	l := New(minute, start)
	l.Step(at(time.Second))
	l.Refused(at(time.Second), start)
	require.False(t, l.Working(at(time.Second)))
	require.Equal(t, l.Until(), l.Due(), "it protects what the holder still does")
	stays := l
	require.Equal(t, GiveBack, stays.Step(stays.Until()), "a holder that never leaves")
	require.True(t, l.Leave(at(2*time.Second)))
	require.Equal(t, at(2*time.Second), l.Due())
	require.Equal(t, GiveBack, l.Step(at(2*time.Second)))
	l.GaveBack()
	require.Equal(t, Released, l.State())

	l = New(minute, start)
	l.Refused(at(time.Second), at(30*time.Second))
	l.Leave(at(2 * time.Second))
	require.Equal(t, at(30*time.Second), l.Due(), "MinHold is not over")
	l.Refused(at(3*time.Second), at(3*time.Second))
	require.Equal(t, at(30*time.Second), l.Due())
	l.Abandon()
	require.True(t, l.Done(), "Close does not wait for it")

	l = New(minute, start)
	l.Leave(start)
	l.Refused(at(time.Second), start)
	require.Equal(t, at(time.Second), l.Due(), "nobody is left")
}

// What a server knows nothing of is given back again, ever more seldom, whatever failed in between.
func TestADeniedLeaseIsGivenBackAgain(t *testing.T) {
	l := New(minute, start)
	l.Leave(start)
	require.True(t, l.GiveUp())
	l.Retry(start)
	now := start
	for range 10 { // a failover
		require.Equal(t, GiveBack, l.Step(now))
		l.Failed(GiveBack, now)
		now = l.Due()
	}
	for _, pause := range []time.Duration{0, 250, 750, 2250, 6750} {
		now = now.Add(pause * time.Millisecond)
		require.Equal(t, now, l.Due())
		require.Equal(t, GiveBack, l.Step(now))
		require.Equal(t, None, l.Step(now), "it is under way")
		l.Denied(now)
	}
	given, closed := l, l
	given.GaveBack()
	require.Equal(t, Released, given.State())
	closed.Abandon()
	require.True(t, closed.Done())
	for ; !l.Done(); now = l.Due() {
		if l.Step(now) == GiveBack {
			l.Denied(now)
		}
	}
	require.Equal(t, Released, l.State(), "the lease is over")
}

// A process that was not scheduled in time gives back nevertheless, once.
func TestALeaseThatIsLongOverIsGivenBackOnce(t *testing.T) {
	l := New(&Terms{Length: time.Second}, start)
	require.Equal(t, Expire, l.Step(at(time.Hour)))
	require.Equal(t, GiveBack, l.Step(at(time.Hour)))
	unheard := l
	unheard.Failed(GiveBack, at(time.Hour))
	for _, l := range []*Lease{&l, &unheard} {
		require.Equal(t, None, l.Step(at(time.Hour)))
		require.Equal(t, Released, l.State())
	}
}
