package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

func etcdRival() rival {
	return rival{
		Name:     "etcd",
		Settings: "concurrency.Mutex of client v3 on an embedded etcd in a process of its own, without fsync, since this Redis has none either; a pooled session for each lock that is held or waited for, because mutexes of one session do not exclude each other (but one session for all locks of the held workload)",
		Renews:   true,
		Etcd:     true,
		Open: func(_ context.Context, p place, u use) (locker, error) {
			c, err := dialEtcd(p)
			if err != nil {
				return nil, err
			}
			return &etcdLocker{client: c, ttl: int(math.Ceil(u.Lease.Seconds()))}, nil
		},
		Ends: etcdEnds,
	}
}

func dialEtcd(p place) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{p.Etcd}, DialTimeout: patience, Logger: zap.NewNop()})
}

type etcdLocker struct {
	client *clientv3.Client
	ttl    int

	mu   sync.Mutex
	idle []*concurrency.Session
	all  []*concurrency.Session
}

// session takes an idle session or makes one.
func (e *etcdLocker) session() (*concurrency.Session, error) {
	e.mu.Lock()
	if n := len(e.idle); n > 0 {
		s := e.idle[n-1]
		e.idle = e.idle[:n-1]
		e.mu.Unlock()
		return s, nil
	}
	e.mu.Unlock()
	s, err := concurrency.NewSession(e.client, concurrency.WithTTL(e.ttl))
	if err == nil {
		e.mu.Lock()
		e.all = append(e.all, s)
		e.mu.Unlock()
	}
	return s, err
}

func (e *etcdLocker) giveBack(s *concurrency.Session) {
	e.mu.Lock()
	e.idle = append(e.idle, s)
	e.mu.Unlock()
}

func (e *etcdLocker) take(ctx context.Context, name string, lock func(*concurrency.Mutex, context.Context) error) (hold, error) {
	s, err := e.session()
	if err != nil {
		return hold{}, err
	}
	m := concurrency.NewMutex(s, "/lock/"+name)
	if err := lock(m, ctx); err != nil {
		e.giveBack(s)
		return hold{}, err
	}
	return hold{Context: s.Ctx(), Unlock: func() error {
		defer e.giveBack(s)
		return m.Unlock(context.Background())
	}}, nil
}

func (e *etcdLocker) Lock(ctx context.Context, name string) (hold, error) {
	return e.take(ctx, name, (*concurrency.Mutex).Lock)
}

func (e *etcdLocker) TryLock(ctx context.Context, name string) (hold, error) {
	h, err := e.take(ctx, name, (*concurrency.Mutex).TryLock)
	if errors.Is(err, concurrency.ErrLocked) {
		err = errBusy
	}
	return h, err
}

// LockShared takes a lock under the first session, which the holder of many distinct locks would
// do.
func (e *etcdLocker) LockShared(ctx context.Context, name string) (hold, error) {
	s, err := e.session()
	if err != nil {
		return hold{}, err
	}
	e.giveBack(s)
	m := concurrency.NewMutex(s, "/lock/"+name)
	return hold{Context: s.Ctx(), Unlock: func() error { return m.Unlock(context.Background()) }}, m.Lock(ctx)
}

func (e *etcdLocker) Close() {
	for _, s := range e.all {
		_ = s.Close() // a lease that could not be revoked ends by itself
	}
	_ = e.client.Close()
}

// etcdEnds finds the end of the lease of the first owner. The server tells whole seconds only,
// rounded down, so this asks until the number changes: at that moment so much is left.
func etcdEnds(ctx context.Context, p place, name string) (time.Time, error) {
	c, err := dialEtcd(p)
	if err != nil {
		return time.Time{}, err
	}
	defer c.Close()
	got, err := c.Get(ctx, "/lock/"+name+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return time.Time{}, err
	}
	if len(got.Kvs) == 0 {
		return time.Time{}, fmt.Errorf("nobody holds %s", name)
	}
	lease := clientv3.LeaseID(got.Kvs[0].Lease)
	last := int64(-1)
	for {
		left, err := c.TimeToLive(ctx, lease)
		if err != nil {
			return time.Time{}, err
		}
		if last >= 0 && left.TTL != last {
			return time.Now().Add(time.Duration(last) * time.Second), nil
		}
		last = left.TTL
	}
}
