package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

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

// What ends a lock in each way, in virtual time and in real time.
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
		t.Run(name+"/bubble", func(t *testing.T) {
			bubble(t, func(t *testing.T, s *locktest.Server) {
				l := must(s.Client(client.Config{}).Acquire(ctx, "x"))
				time.Sleep(2 * time.Second) // from here on the holder is told
				if name == "break" {
					time.Sleep(9 * time.Second) // and from its first renewal on, why
				}
				start := time.Now()
				c.lose(s)
				if err := cause(l); !errors.Is(err, c.want) {
					t.Errorf("the cause is %v", err)
				}
				most := 30 * time.Second
				if c.want != client.ErrExpired && name != "forget" && name != "failover" {
					most = 10 * time.Millisecond
				}
				if took := time.Since(start); took > most {
					t.Errorf("noticed after %v", took)
				}
			})
		})
		t.Run(name+"/real", func(t *testing.T) {
			t.Parallel()
			s := locktest.New(t)
			l := must(s.Client(client.Config{Lease: 300 * time.Millisecond}).Acquire(ctx, "x"))
			c.lose(s)
			if err := cause(l); !errors.Is(err, c.want) && !errors.Is(err, client.ErrTaken) && !errors.Is(err, client.ErrExpired) {
				t.Errorf("the cause is %v", err)
			}
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
				l := must(c1.Acquire(ctx, "x"))
				next := make(chan *client.Lock)
				go func() { next <- must(c2.Acquire(ctx, "x")) }()
				s.Await("x", func(i client.Info) bool { return i.Waiters == 1 })
				c.begin(s)
				time.Sleep(12 * time.Second)
				c.end(s)
				time.Sleep(time.Minute)
				s.HeldBy(l)
				if err := l.Release(ctx); err != nil {
					t.Error(err)
				}
				l = <-next
				s.HeldBy(l)
				if err := l.Release(ctx); err != nil {
					t.Error(err)
				}
				s.Free("x")
			})
		})
	}
}

func TestAFullServerRefusesNewLocks(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{})
		s.Full(true)
		if _, err := c.TryAcquire(ctx, "x"); !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("at a full server: %v", err)
		}
		s.Full(false)
		s.HeldBy(must(c.TryAcquire(ctx, "x")))
	})
}

func TestSomebodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		s.Prefix = "shop:"
		c := s.Client(client.Config{Prefix: "shop:"})
		giveBack := s.Take("x", time.Minute)
		if i := s.Inspect("x"); !i.Held || i.Remaining.Round(time.Second) != time.Minute || i.Holds != 1 || i.Fence == 0 {
			t.Errorf("it stands as %+v", i)
		}
		if _, err := c.TryAcquire(ctx, "x"); !errors.Is(err, client.ErrBusy) {
			t.Errorf("busy: %v", err)
		}
		start := time.Now()
		l := must(c.Acquire(ctx, "x"))
		if took := time.Since(start); took < 59*time.Second || took > 61*time.Second {
			t.Errorf("it gave way after %v", took)
		}
		giveBack() // not its own any more
		s.HeldBy(l)
		giveBack = s.Take("x", time.Hour)
		time.AfterFunc(time.Second, giveBack)
		start = time.Now()
		s.HeldBy(must(c.Acquire(ctx, "x")))
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("given back, and had after %v", took)
		}
	})
}

// A lease that ends at the server makes the next in line the holder; nobody in line, the lock is
// free.
func TestExpireGivesTheLockToTheNext(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		s.Expire("free")
		c1, c2 := s.Client(client.Config{}), s.Client(client.Config{})
		old := must(c1.Acquire(ctx, "x"))
		next := make(chan *client.Lock)
		go func() { next <- must(c2.Acquire(ctx, "x")) }()
		s.Await("x", func(i client.Info) bool { return i.Waiters == 1 })
		start := time.Now()
		s.Expire("x")
		l := <-next
		if took := time.Since(start); took > 10*time.Millisecond {
			t.Errorf("handed over after %v", took)
		}
		s.HeldBy(l)
		if err := cause(old); !errors.Is(err, client.ErrTaken) {
			t.Errorf("the cause is %v", err)
		}
		s.Expire("x")
		s.Free("x")
	})
}

// Waiters come back to a line that Take or Delete threw away.
func TestWaitersJoinAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		giveBack := s.Take("x", time.Hour)
		next := make(chan *client.Lock)
		c := s.Client(client.Config{})
		go func() { next <- must(c.Acquire(ctx, "x")) }()
		s.Await("x", func(i client.Info) bool { return i.Waiters == 1 })
		giveNothing := giveBack
		giveBack = s.Take("x", time.Hour)
		start := time.Now()
		s.Await("x", func(i client.Info) bool { return i.Waiters == 1 })
		if took := time.Since(start); took > 1600*time.Millisecond {
			t.Errorf("back in line after %v", took)
		}
		giveNothing()
		if !s.Inspect("x").Held {
			t.Error("the first one gave back what the second one has")
		}
		giveBack()
		s.HeldBy(<-next)
	})
}

// One client is cut off, the other is not.
func TestCutOfOneClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c1, c2 := s.Client(client.Config{}), s.Client(client.Config{})
		s.Cut(c1)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := c1.TryAcquire(short, "x"); !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("behind the cut: %v", err)
		}
		must(c2.TryAcquire(ctx, "y"))
		s.Restore(c1)
		must(c1.TryAcquire(ctx, "z"))
	})
}

// A client that the code under test opens, and closes.
func TestClientOption(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := must(client.Open(s.ClientOption(), client.Config{}))
		s.HeldBy(must(c.Acquire(ctx, "x")))
		c.Close()
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
		l := must(c.Acquire(ctx, "x"))
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
			if err := l.Release(ctx); err != nil {
				t.Error(err)
			}
			s.HeldBy(l)
		})
		check("Inspect: ERR the node is down", func() {
			s.Stop()
			defer s.Start()
			s.Inspect("x")
		})
	})
}

// Outside of a bubble a test leaves no goroutine behind, whatever went on at its end.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	for name, end := range map[string]func(s *locktest.Server){
		"in peace": func(*locktest.Server) {},
		"cut":      func(s *locktest.Server) { s.Cut() },
		"paused":   func(s *locktest.Server) { s.Pause() },
		"stopped":  func(s *locktest.Server) { s.Stop() },
	} {
		t.Run(name, func(t *testing.T) {
			s := locktest.New(t)
			c1, c2 := s.Client(client.Config{}), s.Client(client.Config{})
			must(c1.Acquire(ctx, "x"))
			go c2.Acquire(ctx, "x")
			s.Await("x", func(i client.Info) bool { return i.Waiters == 1 })
			end(s)
		})
		deadline := time.Now().Add(10 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<20)
				t.Fatalf("%s: goroutines are left\n%s", name, stacks[:runtime.Stack(stacks, true)])
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// A guarded lock is had at once, and after a failover that lost it when the pause is over.
func TestGuardedLocks(t *testing.T) {
	bubble(t, func(t *testing.T, s *locktest.Server) {
		cfg := client.Config{Lease: 30 * time.Second, Guard: 40 * time.Second}
		one, two := s.Client(cfg), s.Client(cfg)
		first, err := one.TryAcquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		s.Failover("job")
		began := time.Now()
		for err = client.ErrUnreachable; errors.Is(err, client.ErrUnreachable); time.Sleep(time.Millisecond) {
			_, err = two.TryAcquire(t.Context(), "job") // the connections have ended
		}
		var busy *client.BusyError
		if !errors.As(err, &busy) || busy.Holder.Owner != "" {
			t.Fatalf("right after the failover: %v", err)
		}
		second, err := two.Acquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if paused := time.Since(began); paused < 40*time.Second-time.Millisecond || paused > 42*time.Second {
			t.Errorf("it was had after %v", paused)
		}
		if first.Context().Err() == nil {
			t.Error("the first holder still counts on it")
		}
		if err := second.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
