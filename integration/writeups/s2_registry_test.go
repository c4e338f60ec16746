package writeups

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// S2's first test, a thousand threads that each add one in two steps. S2 says itself that it proves
// only what happens inside one process.
func TestS2_ThousandConcurrentIncrements(t *testing.T) {
	s := open(t)
	number := s.key("number")
	s.plain.set(number, 0)
	a, b := s.plain.number(number), s.plain.number(number)
	s.plain.set(number, a+1)
	s.plain.set(number, b+1)
	require.Equal(t, 1, s.plain.number(number), "without a lock one of two is lost")

	const threads = 1000
	s.plain.set(number, 0)
	c := s.client(client.Config{})
	var wg sync.WaitGroup
	errs := make([]error, threads)
	for i := range threads {
		wg.Go(func() {
			errs[i] = c.Do(s.Ctx, "counter", func(ctx context.Context) error { return s.plain.add(ctx, number, 1) })
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, threads, s.plain.number(number))
}

// What S2 misses in that test: several processes.
func TestS2_ThousandIncrementsOverSeveralProcesses(t *testing.T) {
	s := open(t)
	s.plain.set(s.key("number"), 0)
	processes := make([]*reexec.Child, 4)
	for i := range processes {
		processes[i] = s.process("increment", 250)
	}
	for _, p := range processes {
		p.Hear("ready")
	}
	for _, p := range processes {
		p.Say("")
	}
	for _, p := range processes {
		p.Hear("done")
	}
	require.Equal(t, 1000, s.plain.number(s.key("number")))
}

// S2's registry waits first for its own process and then for Redis, each for as long as it was
// allowed to wait in all.
func TestS2_WaitBoundedOnceNotTwice(t *testing.T) {
	s := open(t)
	other, c := s.client(client.Config{}), s.client(client.Config{})
	s.take(other, "lock")
	const bound = time.Second
	began := time.Now()
	waited := make(chan error, 2)
	for range 2 { // one of them waits for Redis, the other one for the first
		go func() {
			_, err := c.Acquire(s.Ctx, "lock", client.WithMaxWait(bound))
			waited <- err
		}()
	}
	for range 2 {
		err := <-waited
		require.ErrorIs(t, err, client.ErrTimeout)
		require.GreaterOrEqual(t, time.Since(began), bound)
		require.Less(t, time.Since(began), 2*bound)
	}
}

// S2's finding, reproduced as it did: one process compares the value, stands still until the lease
// is over and another process has the lock, and then deletes it.
func TestS2_UnlockDeletesAnothersLock(t *testing.T) {
	s := open(t)
	naive := s.process("naive unlock", 0)
	naive.Hear("compared")
	naive.Signal(syscall.SIGSTOP)
	s.plain.expired(s.key("naive"))
	require.True(t, s.plain.lock(s.key("naive"), "ours", long))
	naive.Signal(syscall.SIGCONT)
	naive.Say("")
	naive.Hear("deleted")
	require.Empty(t, s.plain.get(s.key("naive")), "we still work under it")

	c := s.client(client.Config{})
	late := s.process("unlock", 0)
	owner := late.Hear("holds")
	late.Signal(syscall.SIGSTOP)
	ours := s.take(c, "lock")
	require.NotEqual(t, owner, ours.Owner())
	late.Say("")
	late.Signal(syscall.SIGCONT)
	late.Hear("lost")
	s.holder(c, ours)
	require.NoError(t, context.Cause(ours.Context()))
	s.Release(ours)
}

// S2's registry says at the unlock that the lease was over, and at that of somebody else's lock
// that it is not held.
func TestS2_UnlockTellsWhatWasWrong(t *testing.T) {
	s := open(t)
	c := s.client(client.Config{})
	late := s.takeLate(c, "lock")
	s.ended(late, client.ErrExpired)
	var lost *client.LostError
	require.ErrorAs(t, late.Release(s.Ctx), &lost)
	require.Equal(t, late.Fence(), lost.Fence)

	l := s.take(c, "lock")
	s.Release(l)
	require.ErrorIs(t, l.Release(s.Ctx), client.ErrNotHeld)
	s.free(c, "lock")
}

// S2 praises re-entry by the thread. Here the lock's context re-enters, in whichever goroutine, and
// nothing else does.
func TestS2_Reentry(t *testing.T) {
	s := open(t)
	one, two := s.client(client.Config{}), s.client(client.Config{})
	outer := s.take(one, "lock")
	inner, err := one.Acquire(outer.Context(), "lock")
	require.NoError(t, err)
	require.Equal(t, outer.Fence(), inner.Fence())
	require.Equal(t, 1, s.holder(two, outer).Holds, "re-entry is counted in the process")
	s.busy(one, "lock") // the same goroutine, but not under the lock

	s.Release(inner)
	require.Equal(t, 1, s.holder(two, outer).Holds)
	require.NoError(t, context.Cause(outer.Context()), "the inner release is not the end")
	s.busy(two, "lock")
	s.Release(outer)
	s.free(two, "lock")
}
