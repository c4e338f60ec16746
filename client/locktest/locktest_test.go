// SPDX-License-Identifier: Apache-2.0

package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
)

func bubble(t *testing.T, test func(t *testing.T, s *locktest.Server)) {
	t.Helper()
	bed.Bubble(t, func(t *testing.T) { test(t, locktest.New(t)) })
}

func cause(l *client.Lock) error {
	<-l.Context().Done()
	return context.Cause(l.Context())
}

// What ends a lock in each way.
func TestWaysToLoseALock(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(s *locktest.Server)
		want error
	}{
		"take":     {func(s *locktest.Server) { s.Take("x", time.Minute) }, client.ErrTaken},
		"break":    {func(s *locktest.Server) { s.Break("x", "maintenance") }, client.ErrBroken},
		"delete":   {func(s *locktest.Server) { s.Delete("x") }, client.ErrTaken},
		"expire":   {func(s *locktest.Server) { s.Expire("x") }, client.ErrTaken},
		"forget":   {func(s *locktest.Server) { s.Forget() }, client.ErrTaken},
		"failover": {func(s *locktest.Server) { s.Failover("y", "x") }, client.ErrTaken},
		"cut":      {func(s *locktest.Server) { s.Cut() }, client.ErrExpired},
		"pause":    {func(s *locktest.Server) { s.Pause() }, client.ErrExpired},
		"stop":     {func(s *locktest.Server) { s.Stop() }, client.ErrExpired},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *locktest.Server) {
				l := bed.Must(s.Client(client.Config{}).Acquire(ctx, "x"))
				time.Sleep(2 * time.Second) // from here on the holder is told
				if name == "break" {
					time.Sleep(9 * time.Second) // and from its first renewal on, why
				}
				start := time.Now()
				c.lose(s)
				require.ErrorIs(t, cause(l), c.want)
				most := 30 * time.Second
				if c.want != client.ErrExpired && name != "forget" && name != "failover" {
					most = 10 * time.Millisecond
				}
				require.LessOrEqual(t, time.Since(start), most)
			})
		})
	}
}

func TestFaultsThatALockSurvives(t *testing.T) {
	for name, c := range map[string]struct{ begin, end func(s *locktest.Server) }{
		"cut":      {func(s *locktest.Server) { s.Cut() }, func(s *locktest.Server) { s.Restore() }},
		"pause":    {(*locktest.Server).Pause, (*locktest.Server).Resume},
		"stop":     {(*locktest.Server).Stop, (*locktest.Server).Start},
		"failover": {func(s *locktest.Server) { s.Failover() }, func(*locktest.Server) {}},
		"full":     {func(s *locktest.Server) { s.Full(true) }, func(s *locktest.Server) { s.Full(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *locktest.Server) {
				c1, c2 := s.Client(client.Config{}), s.Client(client.Config{})
				l := bed.Must(c1.Acquire(ctx, "x"))
				next := bed.Waits(t, c2, "x", nil)
				s.Await("x", func(i client.Info) bool { return i.Waiters == 1 })
				c.begin(s)
				time.Sleep(12 * time.Second)
				c.end(s)
				time.Sleep(time.Minute)
				s.HeldBy(l)
				require.NoError(t, l.Release(ctx))
				l = <-next
				s.HeldBy(l)
				require.NoError(t, l.Release(ctx))
				s.Free("x")
			})
		})
	}
}

func TestSomebodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		s.Prefix = "shop:"
		c := s.Client(client.Config{Prefix: "shop:"})
		giveBack := s.Take("x", time.Minute)
		i := s.Inspect("x")
		require.Equal(t, []any{true, time.Minute, 1}, []any{i.Held, i.Remaining.Round(time.Second), i.Holds})
		require.NotZero(t, i.Fence)
		_, err := c.TryAcquire(ctx, "x")
		require.ErrorIs(t, err, client.ErrBusy)
		start := time.Now()
		l := bed.Must(c.Acquire(ctx, "x"))
		require.InDelta(t, time.Minute, time.Since(start), float64(time.Second))
		giveBack() // not its own any more
		s.HeldBy(l)
		giveBack = s.Take("x", time.Hour)
		time.AfterFunc(time.Second, giveBack)
		start = time.Now()
		s.HeldBy(bed.Must(c.Acquire(ctx, "x")))
		require.LessOrEqual(t, time.Since(start), 2*time.Second)
	})
}

// A lease that ends at the server makes the next in line the holder; nobody in line, the lock is
// free.
func TestExpireGivesTheLockToTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		s.Expire("free")
		c1, c2 := s.Client(client.Config{}), s.Client(client.Config{})
		old := bed.Must(c1.Acquire(ctx, "x"))
		next := bed.Waits(t, c2, "x", nil)
		s.Await("x", func(i client.Info) bool { return i.Waiters == 1 })
		start := time.Now()
		s.Expire("x")
		l := <-next
		require.LessOrEqual(t, time.Since(start), 10*time.Millisecond)
		s.HeldBy(l)
		require.ErrorIs(t, cause(old), client.ErrTaken)
		s.Expire("x")
		s.Free("x")
	})
}

// A lease that ends while its holder gives the lock back leaves nothing behind.
func TestExpireBesideARelease(t *testing.T) {
	s := locktest.New(t)
	c := s.Client(client.Config{})
	over, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil && over.Err() == nil {
			err = c.Do(ctx, "x", func(context.Context) error { return nil })
			if errors.Is(err, client.ErrLost) {
				err = nil
			}
		}
		ended <- err
	}()
	for over.Err() == nil {
		s.Expire("x")
	}
	require.NoError(t, <-ended)
}

// The Server says of a lock what a client says, but for what only a client reads out of the owner.
func TestInspectIsThatOfAClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := bed.Must(client.Open(s.ClientOption(), client.Config{})) // as the code under test does, and closes it
		defer c.Close()
		bed.Must(c.Acquire(ctx, "held"))
		bed.Must(c.Acquire(ctx, "limited", client.WithLimit(2)))
		require.NoError(t, bed.Must(c.Acquire(ctx, "kept", client.WithMinHold(time.Hour))).Release(ctx))
		for _, why := range []string{"held", "limited", "kept", "free"} {
			want := bed.Must(c.Inspect(ctx, why))
			require.Equal(t, why, want.Why)
			got := s.Inspect(why)
			want.Holder, want.Remaining = client.Holder{Owner: want.Holder.Owner}, got.Remaining
			require.Equal(t, want, got)
		}
	})
}

// Waiters come back to a line that Take or Delete threw away.
func TestWaitersJoinAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		giveBack := s.Take("x", time.Hour)
		next := bed.Waits(t, s.Client(client.Config{}), "x", nil)
		s.Await("x", func(i client.Info) bool { return i.Waiters == 1 })
		giveNothing := giveBack
		giveBack = s.Take("x", time.Hour)
		start := time.Now()
		s.Await("x", func(i client.Info) bool { return i.Waiters == 1 })
		require.LessOrEqual(t, time.Since(start), 1600*time.Millisecond)
		giveNothing()
		require.True(t, s.Inspect("x").Held, "the first one gave back what the second one has")
		giveBack()
		s.HeldBy(<-next)
	})
}

// spy is a test whose failures are wanted.
type spy struct {
	testing.TB
	said []string
}

func (s *spy) Errorf(format string, args ...any) {
	s.said = append(s.said, fmt.Sprintf(format, args...))
}
func (s *spy) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	panic(s)
}

// says runs what must fail and returns what it said.
func (s *spy) says(f func()) string {
	s.said = nil
	func() {
		defer func() {
			if r := recover(); r != nil && r != any(s) {
				panic(r)
			}
		}()
		f()
	}()
	return strings.Join(s.said, "; ")
}

func TestFailuresNameWhatIsWrong(t *testing.T) {
	bubble(t, func(t *testing.T, other *locktest.Server) {
		tb := &spy{TB: t}
		s := locktest.New(tb)
		c := s.Client(client.Config{})
		l := bed.Must(c.Acquire(ctx, "x"))
		check := func(want string, f func()) {
			t.Helper()
			if got := tb.says(f); !strings.HasPrefix(got, "locktest: "+want) {
				t.Errorf("it said %q, want %q", got, want)
			}
		}
		check(`Free: lock "x" is held by "`+l.Owner()+`" for 30.001s, with 0 waiting`, func() { s.Free("x") })
		check("Take: the lock's name must not be empty", func() { s.Take("", time.Second) })
		check("Take: HFARG ttl_ms must be an integer from 1 to 31536000000", func() { s.Take("y", 0) })
		check("Cut: argument 2 is no client of this Server's Client method", func() { s.Cut(c, other.Client(client.Config{})) })
		check("Client: holdfast: open: ", func() { s.Client(client.Config{Lease: 1}) })
		check(`Await: after 1m0s lock "free" is free, with 0 waiting`, func() { s.Await("free", held) })
		check("a command was sent that the test's Redis does not model: LRANGE", func() {
			c.Redis().Do(ctx, c.Redis().B().Lrange().Key("k").Start(0).Stop(1).Build())
		})
		check(`HeldBy: lock "x" is free, with 0 waiting, not by "`+l.Owner()+`"`, func() {
			require.NoError(t, l.Release(ctx))
			s.HeldBy(l)
		})
		check(`Expire: lock "y" is limited or shared`, func() {
			bed.Must(c.Acquire(ctx, "y", client.WithLimit(2)))
			s.Expire("y")
		})
		check("Inspect: ERR the node is down", func() {
			s.Stop()
			defer s.Start()
			s.Inspect("x")
		})
	})
}
