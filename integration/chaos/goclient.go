package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// goWorker uses the Go client as a program would that wants everything of it.
type goWorker struct {
	*worker
	client *client.Client
	level  oracle.Level
	long   bool // what it takes now it holds for long
}

// lease chooses one. Most are short: the lease of a holder that was killed is time in which nothing
// happens.
func (w *worker) lease() time.Duration {
	list := []time.Duration{time.Second, time.Second, time.Second, 1500 * time.Millisecond,
		1500 * time.Millisecond, w.Longest}
	return list[w.random.IntN(len(list))]
}

// startGo opens a client at each level. The workers take turns with them.
func startGo(j *job, workers []*worker) (func(), error) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	config := client.Config{Logger: quiet, AutoLoad: j.AutoLoad}
	if j.Guard > 0 {
		config.Guard, config.Lease = j.Guard, j.Longest
	}
	plain, err := j.open(config)
	if err != nil {
		return nil, err
	}
	replicated := plain
	if j.Replicas > 0 && j.Guard == 0 {
		replicated, err = client.Open(j.option(), client.Config{Logger: quiet, AutoLoad: j.AutoLoad,
			Replicas: j.Replicas, ReplicaWait: 500 * time.Millisecond})
		if err != nil {
			plain.Close()
			return nil, err
		}
	}
	for i, w := range workers {
		g := &goWorker{worker: w, client: plain, level: j.Level}
		if j.replicated(i) {
			g.client, g.level = replicated, oracle.Replicas
		}
		w.turn = g.take
	}
	return func() {
		plain.Close()
		replicated.Close()
	}, nil
}

// open opens a client of the level that most are at.
func (j *job) open(config client.Config) (*client.Client, error) {
	if j.Quorum {
		return quorum.Open(j.options(), config)
	}
	return client.Open(j.option(), config)
}

// take wants a lock, holds it, and gives it back.
func (g *goWorker) take(name string, got func()) {
	lease := g.lease()
	if g.long = !g.isCalm() && g.chance(g.Long); g.long {
		lease = g.Longest
	}
	if g.isCalm() {
		g.acquire(name, lease, 30*time.Second, got)
		return
	}
	switch x := g.random.Float64(); {
	case x < 0.65:
		g.acquire(name, lease, 200*time.Millisecond+g.some(8*time.Second), got)
	case x < 0.98 || !g.Breaks:
		g.try(name, lease, got)
	default:
		const limit = 2 * time.Second
		g.called("break", name, g.level, limit, func() (string, int64) {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			info, err := g.client.Break(ctx, name, "chaos")
			return outcome(err), info.Fence
		})
	}
}

func (g *goWorker) acquire(name string, lease, limit time.Duration, got func()) {
	var lock *client.Lock
	id, start := g.called("acquire", name, g.level, limit, func() (string, int64) {
		ctx, cancel := context.WithTimeout(g.stopping, limit)
		defer cancel()
		var err error
		lock, err = g.client.Acquire(ctx, name, client.WithLease(lease),
			client.WithLockContext(context.Background()))
		return outcome(err), fenceOf(lock)
	})
	g.hold(name, lease, lock, id, start, got)
}

func (g *goWorker) try(name string, lease time.Duration, got func()) {
	const limit = 3 * time.Second
	var lock *client.Lock
	id, start := g.called("try", name, g.level, limit, func() (string, int64) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		opts := []client.Option{client.WithLease(lease),
			client.WithLockContext(context.Background())}
		if g.chance(0.5) {
			opts = append(opts, client.WithFreshAnswer())
		}
		var err error
		lock, err = g.client.TryAcquire(ctx, name, opts...)
		return outcome(err), fenceOf(lock)
	})
	g.hold(name, lease, lock, id, start, got)
}

// hold works under the lock and gives it back. Without a lock it pauses, as a caller does that
// failed.
func (g *goWorker) hold(name string, lease time.Duration, lock *client.Lock, id int64, start stamp,
	got func()) {
	if lock == nil {
		g.rest(g.some(40 * time.Millisecond))
		return
	}
	live := func() bool { return lock.Context().Err() == nil && lock.Remaining() > 0 }
	l := &look{worker: g.worker, id: id, lock: name, level: g.level, owner: lock.Owner(),
		token: lock.Fence(), start: start, live: live}
	if l.see() {
		got()
	}
	l.deposit(g.some(10 * time.Millisecond))
	switch x := g.random.Float64(); {
	case x < 0.1:
		g.reenter(l, lock)
	case x < 0.2:
		g.renew(name, lock)
	case g.long:
		l.stay(time.Duration(g.random.Float64() * 1.5 * float64(lease)))
		l.deposit(0)
	}
	l.see()
	const limit = 3 * time.Second
	at := now()
	_, _ = g.called("release", name, g.level, limit, func() (string, int64) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err := lock.Release(ctx)
		at = now()
		return outcome(err), lock.Fence()
	})
	l.leave(at, "release")
}

// reenter takes the lock once more, under its own context, and gives that back.
func (g *goWorker) reenter(l *look, lock *client.Lock) {
	const limit = 3 * time.Second
	var inner *client.Lock
	g.called("re-enter", l.lock, g.level, limit, func() (string, int64) {
		var err error
		inner, err = g.client.Acquire(lock.Context(), l.lock)
		return outcome(err), fenceOf(inner)
	})
	if inner == nil {
		return
	}
	if inner.Fence() != lock.Fence() || inner.Owner() != lock.Owner() {
		l.trouble("re-entry", "token %d of %s inside of %d of %s", inner.Fence(), inner.Owner(),
			lock.Fence(), lock.Owner())
	}
	l.stay(g.some(5 * time.Millisecond))
	g.called("release inner", l.lock, g.level, limit, func() (string, int64) {
		return outcome(inner.Release(context.Background())), inner.Fence()
	})
}

func (g *goWorker) renew(name string, lock *client.Lock) {
	const limit = time.Second
	g.called("renew", name, g.level, limit, func() (string, int64) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		return outcome(lock.Renew(ctx)), lock.Fence()
	})
}

func fenceOf(l *client.Lock) int64 {
	if l == nil {
		return 0
	}
	return l.Fence()
}

// outcome is the kind of an error.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	kinds := []struct {
		err  error
		name string
	}{
		{client.ErrBusy, "busy"},
		{client.ErrTimeout, "timeout"},
		{client.ErrNotReplicated, "too few replicas"},
		{client.ErrDenied, "denied"},
		{client.ErrUnreachable, "unreachable"},
		{client.ErrClosed, "closed"},
		{client.ErrLost, "lost"},
		{client.ErrLibrary, "no library"},
		{client.ErrNotHeld, "not held"},
		{context.Canceled, "canceled"},
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return err.Error()
}
