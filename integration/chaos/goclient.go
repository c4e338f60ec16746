// SPDX-License-Identifier: Apache-2.0

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

// lease chooses one. Most are short: the lease of a holder that was killed is time in which nothing
// happens.
func (w *worker) lease() time.Duration {
	list := []time.Duration{time.Second, time.Second, time.Second, 1500 * time.Millisecond,
		1500 * time.Millisecond, w.Longest}
	return list[w.random.IntN(len(list))]
}

// replicaWait is how long a client lets the server wait for the replicas.
const replicaWait = 500 * time.Millisecond

// startGo opens a client at each level, and gives each worker its turn with one. The func that it returns
// closes them.
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
		if j.Defect != defectUnheard {
			config.Replicas, config.ReplicaWait = j.Replicas, replicaWait
		}
		if replicated, err = j.open(config); err != nil {
			plain.Close()
			return nil, err
		}
	}
	for i, w := range workers {
		w.client, w.level = plain, j.Level
		if j.replicated(i) {
			w.client, w.level = replicated, oracle.Replicas
		}
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
	return client.Open(j.option(j.Addrs...), config)
}

// take wants a lock, holds it, and gives it back.
func (w *worker) take(name string, got func()) {
	lease, calm := w.lease(), w.isCalm()
	if w.long = !calm && w.chance(w.Long); w.long {
		lease = w.Longest
	}
	x, limit := w.random.Float64(), 30*time.Second
	if !calm {
		limit = 200*time.Millisecond + w.some(8*time.Second)
	}
	opts := []client.Option{client.WithLease(lease), client.WithLockContext(context.Background())}
	switch w.limit = w.choose(name); w.limit {
	case 0:
	case oracle.Sharing:
		opts = append(opts, client.WithShared())
	default:
		opts = append(opts, client.WithLimit(w.limit))
	}
	switch {
	case calm || x < 0.65:
		w.want("acquire", w.client.Acquire, w.stopping, name, lease, limit, got, opts)
	case x < 0.98 || !w.Breaks:
		if w.chance(0.5) {
			opts = append(opts, client.WithFreshAnswer())
		}
		w.want("try", w.client.TryAcquire, context.Background(), name, lease, brief, got, opts)
	default:
		w.does("break", name, context.Background(), 2*time.Second, func(ctx context.Context) (int64, error) {
			info, err := w.client.Break(ctx, name, "chaos")
			return info.Fence, err
		})
	}
}

// brief is the limit of most calls.
const brief = 3 * time.Second

// does makes a call that is to be over within its limit.
func (w *worker) does(verb, name string, ctx context.Context, limit time.Duration,
	f func(context.Context) (token int64, err error)) (id int64, start stamp) {
	return w.called(call{Call: verb, Lock: name, Level: w.level, Limit: limit}, func() (string, int64) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		token, err := f(ctx)
		return outcome(err), token
	})
}

// want asks for a lock, works under it and gives it back. Without a lock it pauses, as a caller does that
// failed.
func (w *worker) want(verb string, acquire func(context.Context, string, ...client.Option) (*client.Lock, error),
	ctx context.Context, name string, lease, limit time.Duration, got func(), opts []client.Option) {
	var lock *client.Lock
	id, start := w.does(verb, name, ctx, limit, func(ctx context.Context) (_ int64, err error) {
		lock, err = acquire(ctx, name, opts...)
		return fenceOf(lock), err
	})
	if lock == nil {
		w.rest(w.some(40 * time.Millisecond))
		return
	}
	l := w.look(id, start, name, w.level, lock.Owner(), lock.Fence(),
		func() bool { return lock.Context().Err() == nil && lock.Remaining() > 0 })
	l.hold.Limit, l.hold.Slot = w.limit, lock.Slot()
	if l.see() {
		got()
	}
	l.stay(w.some(10 * time.Millisecond))
	switch x := w.random.Float64(); {
	case x < 0.1:
		w.does("renew", name, context.Background(), time.Second, func(ctx context.Context) (int64, error) {
			return lock.Fence(), lock.Renew(ctx)
		})
	case w.long:
		l.stay(time.Duration(w.random.Float64() * 1.5 * float64(lease)))
	}
	l.see()
	at := now()
	w.does("release", name, context.Background(), brief, func(ctx context.Context) (int64, error) {
		err := lock.Release(ctx)
		at = now()
		return lock.Fence(), err
	})
	l.leave(at, "release")
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
	for _, kind := range []error{client.ErrBusy, client.ErrTimeout, client.ErrNotReplicated, client.ErrDenied,
		client.ErrUnreachable, client.ErrClosed, client.ErrLost, client.ErrLibrary, client.ErrNotHeld, context.Canceled} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return err.Error()
}
