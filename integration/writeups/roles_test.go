package writeups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// The roles of other processes. They say what they did, a line each, and hear
// lines that tell them to go on.
var roles = map[string]reexec.Role{
	"increment":    increment,
	"naive unlock": naiveUnlock,
	"unlock":       unlock,
	"hold":         hold,
}

type job struct {
	Addr, Username, Password string
	DB                       int
	Prefix                   string
	Times                    int
}

// actor is what a role has.
type actor struct {
	*reexec.Parent
	job
	redis rueidis.Client
	locks *client.Client
}

func act(p *reexec.Parent) (*actor, context.Context, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	context.AfterFunc(ctx, cancel)
	a := &actor{Parent: p}
	if err := p.Job(&a.job); err != nil {
		return nil, nil, err
	}
	option := rueidis.ClientOption{InitAddress: []string{a.Addr}, Username: a.Username, Password: a.Password, SelectDB: a.DB}
	var err error
	if a.redis, err = rueidis.NewClient(option); err != nil {
		return nil, nil, err
	}
	a.locks, err = client.Open(option, client.Config{Prefix: a.Prefix, Lease: long,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	return a, ctx, err
}

func (a *actor) do(ctx context.Context, words ...string) rueidis.RedisResult {
	return a.redis.Do(ctx, a.redis.B().Arbitrary(words...).Build())
}

// says prints a line and waits for one.
func (a *actor) says(line string) error {
	a.Say(line)
	_, err := a.Hear()
	return err
}

// increment adds to a number, in two steps, under a lock.
func increment(p *reexec.Parent) error {
	a, ctx, err := act(p)
	if err != nil {
		return err
	}
	if err := a.says("ready"); err != nil {
		return err
	}
	for range a.Times {
		err := a.locks.Do(ctx, "counter", func(ctx context.Context) error {
			n, err := a.do(ctx, "GET", a.Prefix+"number").AsInt64()
			if err != nil {
				return err
			}
			return a.do(ctx, "SET", a.Prefix+"number", fmt.Sprint(n+1)).Error()
		})
		if err != nil {
			return err
		}
	}
	a.Say("done")
	return nil
}

// naiveUnlock locks with a value of its own, compares it, and deletes the key, with a pause before
// that.
func naiveUnlock(p *reexec.Parent) error {
	a, ctx, err := act(p)
	if err != nil {
		return err
	}
	key := a.Prefix + "naive"
	if err := a.do(ctx, "SET", key, "child", "NX", "PX", milliseconds(short)).Error(); err != nil {
		return err
	}
	value, err := a.do(ctx, "GET", key).ToString()
	if err != nil || value != "child" {
		return fmt.Errorf("it has %q: %w", value, err)
	}
	if err := a.says("compared"); err != nil {
		return err
	}
	err = a.do(ctx, "DEL", key).Error()
	a.Say("deleted")
	return err
}

// unlock takes a lock for a short lease, and releases it when it is told to.
func unlock(p *reexec.Parent) error {
	a, ctx, err := act(p)
	if err != nil {
		return err
	}
	l, err := a.locks.Acquire(ctx, "lock", client.WithLease(short), client.WithoutRenewal())
	if err != nil {
		return err
	}
	if err := a.says("holds " + l.Owner()); err != nil {
		return err
	}
	switch err := l.Release(ctx); {
	case errors.Is(err, client.ErrLost):
		a.Say("lost")
	case err == nil:
		a.Say("released")
	default:
		return err
	}
	return nil
}

// hold takes a lock and never gives it back.
func hold(p *reexec.Parent) error {
	a, ctx, err := act(p)
	if err != nil {
		return err
	}
	l, err := a.locks.Acquire(ctx, "lock", client.WithLease(alive))
	if err != nil {
		return err
	}
	return a.says("holds " + l.Owner())
}

func (s *shop) process(role string, times int) *reexec.Child {
	s.TB.Helper()
	o := s.D.ClientOption()
	if o.TLSConfig != nil {
		s.TB.Skip("the other processes of this test do not speak TLS")
	}
	return reexec.Spawn(s.TB, role, job{o.InitAddress[0], o.Username, o.Password, o.SelectDB, s.Prefix, times})
}
