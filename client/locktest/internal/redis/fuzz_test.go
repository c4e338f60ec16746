package redis_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/redis/rueidis"
)

// The bits of how, in FuzzOptions.
const (
	noPrefix = 1 << iota
	giveUpEarly
	noRenewal
	asOwner
	polling
	tries
	taken // somebody else has the lock
	byConfig
	freshAnswer
	withoutReentry
	several
	renewFor
	reenter
	breaks
	once
	outlives // its context is not that of the wait
	unloaded // the server does not have the library
	voting   // of three servers
	tame     // times are such that most are taken
)

// kinds are those of which each error has one.
var kinds = []error{client.ErrBusy, client.ErrTimeout, client.ErrUnreachable, client.ErrClosed, client.ErrLost,
	client.ErrInvalid, context.Canceled}

// kindly fails the test unless err is nil, or of one kind.
func kindly(t *testing.T, what string, err error) bool {
	t.Helper()
	of := slices.DeleteFunc(slices.Clone(kinds), func(kind error) bool { return !errors.Is(err, kind) })
	if err != nil && len(of) != 1 {
		t.Errorf("%s: %v is of the kinds %v", what, err, of)
	}
	return err == nil
}

// FuzzOptions takes locks by any names and settings, in virtual time on a Cluster or a quorum. Each is refused by
// an error of one kind, or a lock is had, with an expiry, and given back.
func FuzzOptions(f *testing.F) {
	second, year := int64(time.Second), int64(365*24*time.Hour)
	f.Add("", "order", "", "", byConfig, int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 0, 0, 0)
	f.Add("{shop}:", "order:42", "job", "deploy", asOwner|several|reenter, 30*second, second, second, second, second, second, second, 60*second, 3, 2, 1)
	f.Add("{", "}{", "a b", "\n", taken|byConfig, int64(1), int64(-1), int64(1), int64(1), int64(1), int64(1), int64(1), int64(1), -1, -1, -1)
	f.Add("lock:", "{}", "\x00", "\xff", noPrefix|polling|tries|once, year, year, year, year, year, year, year, year, 1, 1, 0)
	f.Add("x", strings.Repeat("n", 600), strings.Repeat("o", 600), strings.Repeat("l", 130), renewFor|outlives,
		int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64),
		int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), math.MaxInt, math.MaxInt, math.MaxInt)
	f.Add("", "order", "", "", noRenewal|breaks|freshAnswer|withoutReentry, second, second, second, second/100, int64(0), int64(0), second, int64(0), 0, 0, 0)
	for bit := 1; bit <= tame; bit *= 2 {
		f.Add("", "order", "job", "deploy", tame|bit, second, second, second/100, int64(0), second, second/10, int64(0), int64(0), 3, 0, 0)
		f.Add("{x}", "a{b}", "job", "", tame|bit|reenter, second, int64(0), second/100, second/100, int64(0), int64(0), second/10, int64(1), 3, 5, 0)
	}
	f.Add("", "order", "", "", tame|voting|reenter, second/5, second, second/100, int64(0), int64(0), int64(0), int64(0), int64(1), 0, 0, 0)
	f.Add("", "order", "", "", unloaded|giveUpEarly, second, second, second, int64(0), int64(0), int64(0), int64(0), int64(0), 0, 0, 0)
	f.Fuzz(func(t *testing.T, prefix, name, owner, label string, how int,
		lease, wait, interval, every, hold, grace, least, guard int64, tried, renewals, replicas int) {
		bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
			var nodes []*redis.Node
			if how&voting != 0 {
				nodes = []*redis.Node{w.Node("a:1"), w.Node("b:1"), w.Node("c:1")}
			} else {
				nodes = w.Cluster(2, 0)
			}
			if how&unloaded == 0 {
				bed.Load(t, nodes...)
			}
			d := func(n int64) time.Duration { return time.Duration(n) }
			if how&tame != 0 {
				d = func(n int64) time.Duration { return time.Duration(n & (1<<34 - 1)) } // 17 s
				lease, every = lease|1<<24, every&(1<<23-1)
				tried, renewals, replicas = tried&0xff, renewals&0xff, replicas&1
				if guard != 0 {
					guard = max(lease&(1<<34-1), 2*least&(1<<34-1)) + guard&(1<<28-1)
				}
			}
			cfg := bed.Quiet(client.Config{Prefix: prefix, NoPrefix: how&noPrefix != 0})
			var opts []client.Option
			chosen := map[int]client.Option{
				asOwner: client.WithOwner(owner), freshAnswer: client.WithFreshAnswer(), withoutReentry: client.WithoutReentry(),
				outlives: client.WithLockContext(context.Background()), polling: client.WithPolling(tried, d(interval)),
			}
			if how&byConfig != 0 {
				cfg.Lease, cfg.MaxWait, cfg.RenewEvery, cfg.MaxHold = d(lease), d(wait), d(every), d(hold)
				cfg.Grace, cfg.MinHold, cfg.Guard, cfg.MaxRenewals, cfg.Label = d(grace), d(least), d(guard), renewals, label
				cfg.Replicas, cfg.GiveUpEarly, cfg.NoRenewal = replicas, how&giveUpEarly != 0, how&noRenewal != 0
			} else {
				opts = []client.Option{client.WithLease(d(lease)), client.WithMaxWait(d(wait)), client.WithRenewal(d(every)),
					client.WithMaxHold(d(hold), d(grace)), client.WithMinHold(d(least)), client.WithGuard(d(guard)),
					client.WithMaxRenewals(renewals), client.WithLabel(label), client.WithReplicas(replicas, d(wait))}
				chosen[giveUpEarly], chosen[noRenewal] = client.WithGiveUpEarly(), client.WithoutRenewal()
			}
			for bit, opt := range chosen {
				if how&bit != 0 {
					opts = append(opts, opt)
				}
			}
			c, err := connect(w, nodes, cfg, how&voting != 0)
			if !kindly(t, "Open", err) {
				return
			}
			u := &user{t, w, c, name, how, opts, d(lease), d(least)}
			u.use()
			c.Close()
			u.bounded()
		})
	})
}

func connect(w *redis.World, nodes []*redis.Node, cfg client.Config, voting bool) (*client.Client, error) {
	if !voting {
		return client.Open(bed.Options(w, "client", nodes[0].Addr(), nodes[1].Addr()), cfg)
	}
	var all []rueidis.ClientOption
	for _, n := range nodes {
		all = append(all, bed.Single(w, "client", n.Addr()))
	}
	return quorum.Open(all, cfg)
}

// user uses a lock as FuzzOptions says.
type user struct {
	*testing.T
	w     *redis.World
	c     *client.Client
	name  string
	how   int
	opts  []client.Option
	lease time.Duration
	least time.Duration
}

func (u *user) does(bit int) bool { return u.how&bit != 0 }

func (u *user) use() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if u.does(taken) {
		other, err := u.c.TryAcquire(ctx, u.name, client.WithLease(time.Second))
		if kindly(u.T, "the other's TryAcquire", err) && other != nil {
			defer func() { kindly(u.T, "the other's Release", other.Release(ctx)) }()
		}
	}
	_, err := u.c.Inspect(ctx, u.name)
	kindly(u.T, "Inspect", err)
	switch {
	case u.does(once):
		_, err := u.c.Once(ctx, u.name, u.lease, func(context.Context) error { return nil }, u.opts...)
		kindly(u.T, "Once", err)
	case u.does(several):
		all, err := u.c.AcquireAll(ctx, []string{u.name, u.name + "2"}, u.opts...)
		if kindly(u.T, "AcquireAll", err) {
			kindly(u.T, "Release", all.Release(ctx))
		}
	default:
		take := u.c.Acquire
		if u.does(tries) {
			take = u.c.TryAcquire
		}
		l, err := take(ctx, u.name, u.opts...)
		if kindly(u.T, "Acquire", err) {
			u.work(ctx, l)
		}
	}
}

// work is done under the lock.
func (u *user) work(ctx context.Context, l *client.Lock) {
	if l.Fence() <= 0 || l.Name() != u.name {
		u.Errorf("token %d of %q", l.Fence(), l.Name())
	}
	client.ParseHolder(l.Owner())
	u.bounded()
	if u.does(renewFor) {
		kindly(u.T, "RenewFor", l.RenewFor(ctx, u.least))
	}
	if u.does(reenter) {
		inner, err := u.c.Acquire(l.Context(), u.name, u.opts...)
		if kindly(u.T, "the inner Acquire", err) {
			kindly(u.T, "the inner Release", inner.Release(ctx))
		}
	}
	if u.does(breaks) {
		_, err := u.c.Break(ctx, u.name, u.name)
		kindly(u.T, "Break", err)
	}
	time.Sleep(20 * time.Millisecond)
	if cause := context.Cause(l.Context()); !errors.Is(cause, context.DeadlineExceeded) { // that is ctx's
		kindly(u.T, "the end of the context", cause)
	}
	if err := l.Release(ctx); kindly(u.T, "Release", err) && u.least == 0 && !u.does(asOwner) {
		if info, err := u.c.Inspect(ctx, u.name); err == nil && info.Held && info.Holder.Owner == l.Owner() {
			u.Errorf("released, and held by %q", info.Holder.Owner)
		}
	}
}

// bounded fails the test if a key has no expiry, or one that is further away than any lease.
func (u *user) bounded() {
	for _, n := range u.w.Nodes() {
		keys, _ := n.Do("KEYS", "*").([]any)
		for _, key := range keys {
			if ttl, ok := n.Do("PTTL", key.(string)).(int64); !ok || ttl < 0 || ttl > 366*24*3600*1000 {
				u.Errorf("%q expires in %d ms", key, ttl)
			}
		}
	}
}
