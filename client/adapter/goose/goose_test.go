// SPDX-License-Identifier: Apache-2.0

package holdfastgoose_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"

	"github.com/holdfast-go/holdfast/client"
	holdfastgoose "github.com/holdfast-go/holdfast/client/adapter/goose"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// provider migrates v by five migrations, and more. Each takes a moment, so that providers which do not
// exclude each other meet.
func provider(t testing.TB, v *versions, l lock.Locker, more ...*goose.Migration) *goose.Provider {
	for i := range int64(5) {
		more = append(more, goose.NewGoMigration(i+1, &goose.GoFunc{
			RunTx: func(context.Context, *sql.Tx) error {
				time.Sleep(20 * time.Millisecond)
				return nil
			},
		}, nil))
	}
	p, err := goose.NewProvider("", v.open(t), nil, goose.WithStore(v), goose.WithLocker(l),
		goose.WithGoMigrations(more...), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// goose's own suite: of five providers that migrate one database at once, one does all migrations.
func TestGooseProviderLocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		v := &versions{}
		locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
			return provider(t, v, holdfastgoose.NewLocker(s.Client(client.Config{}), "migrate"))
		})
		s.Free("migrate")
	})
}

// goose's own suite: one of five lockers has the lock, and the others give up in time.
func TestGooseConcurrentLocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		locktesting.TestConcurrentLocking(t, nil, func(t *testing.T) lock.Locker {
			return holdfastgoose.NewLocker(s.Client(client.Config{}), "migrate")
		}, 200*time.Millisecond)
		s.Free("migrate")
	})
}

// The wait is until the context ends, whatever the client's other waits are.
func TestLockWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		s.Take("migrate", time.Hour)
		l := holdfastgoose.NewLocker(s.Client(client.Config{MaxWait: time.Second}), "migrate")
		if err := l.Lock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestUpSaysThatTheLockWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		steal := goose.NewGoMigration(6, &goose.GoFunc{RunTx: func(context.Context, *sql.Tx) error {
			s.Take("migrate", time.Minute)
			return nil
		}}, nil)
		p := provider(t, &versions{}, holdfastgoose.NewLocker(c, "migrate"), steal)
		results, err := p.Up(t.Context())
		var lost *client.LostError
		if !errors.Is(err, client.ErrLost) || !errors.As(err, &lost) {
			t.Errorf("Up returned %d results and %v", len(results), err)
		}
	})
}

// Under Do with the same name a provider re-enters the lock, and its migration ends with it.
func TestAMigrationUnderDoEndsWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		slow := goose.NewGoMigration(6, &goose.GoFunc{RunTx: func(ctx context.Context, _ *sql.Tx) error {
			s.Take("migrate", time.Minute)
			<-ctx.Done()
			return context.Cause(ctx)
		}}, nil)
		v := &versions{}
		p := provider(t, v, holdfastgoose.NewLocker(c, "migrate"), slow)
		err := c.Do(t.Context(), "migrate", func(ctx context.Context) error {
			_, err := p.Up(ctx)
			return err
		})
		if !errors.Is(err, client.ErrLost) {
			t.Errorf("Do returned %v", err)
		}
		if got := v.latest(); got != 5 {
			t.Errorf("the database has version %d", got)
		}
	})
}

// A migration that does not heed its context goes on when that ends, and goose waits for it: the lock is kept until
// its Unlock.
func TestTheLockOutlivesTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		ctx, cancel := context.WithCancel(t.Context())
		deaf := goose.NewGoMigration(6, &goose.GoFunc{RunDB: func(context.Context, *sql.DB) error {
			cancel()
			time.Sleep(2 * time.Minute)
			if !s.Inspect("migrate").Held {
				t.Error("another process can migrate beside this one")
			}
			return nil
		}}, nil)
		p := provider(t, &versions{}, holdfastgoose.NewLocker(s.Client(client.Config{}), "migrate"), deaf)
		_, err := p.Up(ctx)
		if errors.Is(err, client.ErrLost) {
			t.Errorf("Up returned %v", err)
		}
		s.Free("migrate")
	})
}

func TestNothingIsMigratedWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c := s.Client(client.Config{})
		s.Stop()
		v := &versions{}
		p := provider(t, v, holdfastgoose.NewLocker(c, "migrate"))
		if _, err := p.Up(t.Context()); !errors.Is(err, client.ErrUnreachable) {
			t.Errorf("Up returned %v", err)
		}
		if got := v.latest(); got != 0 {
			t.Errorf("the database has version %d", got)
		}
	})
}

// ErrUnreachable says that nothing was migrated.
func TestRedisIsGoneAfterTheMigrations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		last := goose.NewGoMigration(6, &goose.GoFunc{RunTx: func(context.Context, *sql.Tx) error {
			s.Pause()
			return nil
		}}, nil)
		v := &versions{}
		p := provider(t, v, holdfastgoose.NewLocker(s.Client(client.Config{}), "migrate"), last)
		if results, err := p.Up(t.Context()); err != nil || len(results) != 6 {
			t.Errorf("Up returned %d results and %v", len(results), err)
		}
		s.Resume()
	})
}

// Two providers share a Locker. The one whose lock was lost hears of it, and not the one that migrates meanwhile.
func TestTheLossIsToldToItsProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		l := holdfastgoose.NewLocker(s.Client(client.Config{}), "migrate")
		slow := goose.NewGoMigration(6, &goose.GoFunc{RunTx: func(context.Context, *sql.Tx) error {
			time.Sleep(10 * time.Minute)
			return nil
		}}, nil)
		a, b := provider(t, &versions{}, l, slow), provider(t, &versions{}, l)
		first := make(chan error, 1)
		go func() {
			_, err := a.Up(t.Context())
			first <- err
		}()
		time.Sleep(time.Minute)
		s.Break("migrate", "maintenance")
		time.Sleep(time.Minute)
		if _, err := b.Up(t.Context()); err != nil {
			t.Errorf("Up of the second provider returned %v", err)
		}
		if s.Inspect("migrate").Held {
			t.Error("the second provider did not give its lock back")
		}
		if err := <-first; !errors.Is(err, client.ErrLost) {
			t.Errorf("Up of the first provider returned %v", err)
		}
	})
}

// One Locker, two callers: the first one's lock was lost. Its Unlock gives back nothing of the second.
func TestUnlockGivesBackTheOldestLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		l := holdfastgoose.NewLocker(s.Client(client.Config{}), "migrate", client.WithMaxWait(time.Second))
		if err := l.Lock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := l.Lock(t.Context(), nil); !errors.Is(err, client.ErrTimeout) {
			t.Fatalf("the second Lock returned %v", err)
		}
		s.Delete("migrate")
		time.Sleep(30 * time.Second)
		if err := l.Lock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context(), nil); !errors.Is(err, client.ErrLost) {
			t.Errorf("the first Unlock returned %v", err)
		}
		if !s.Inspect("migrate").Held {
			t.Error("the first Unlock gave back the second lock")
		}
		if err := l.Unlock(t.Context(), nil); err != nil {
			t.Error(err)
		}
		s.Free("migrate")
		if err := l.Unlock(t.Context(), nil); !errors.Is(err, client.ErrNotHeld) {
			t.Errorf("a third Unlock returned %v", err)
		}
	})
}

// A client that is closed renews no more, so another process migrates while this one still does.
func TestUpSaysThatTheClientWasClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := locktest.New(t)
		c, other := s.Client(client.Config{}), s.Client(client.Config{})
		beside := false
		slow := goose.NewGoMigration(6, &goose.GoFunc{RunTx: func(ctx context.Context, _ *sql.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second) // as SIGTERM does
			defer cancel()
			_ = c.Shutdown(ctx)
			lock, err := other.Acquire(t.Context(), "migrate")
			if beside = err == nil; beside {
				return lock.Release(t.Context())
			}
			return err
		}}, nil)
		p := provider(t, &versions{}, holdfastgoose.NewLocker(c, "migrate"), slow)
		results, err := p.Up(t.Context())
		var lost *client.LostError
		if !errors.As(err, &lost) {
			t.Errorf("Up returned %d results and %v, and another process had the lock meanwhile: %v", len(results), err, beside)
		}
	})
}
