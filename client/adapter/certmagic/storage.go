// SPDX-License-Identifier: Apache-2.0

// Package holdfastcertmagic gives caddyserver/certmagic the locks of Holdfast, over any storage.
//
//	import holdfastcertmagic "github.com/holdfast-go/holdfast/client/adapter/certmagic"
//
//	storage := holdfastcertmagic.NewStorage(c, files) // c is a *client.Client, files a certmagic.Storage
//	certmagic.Default.Storage = storage
//
// Certificates stay where they were. Only the locks change: that of one process that obtains or renews
// a certificate, keeps an account, or cleans up. The locks of storages are files or rows that are asked
// for again and again, and that are believed stale after a while. Here a process waits in line, and has
// the lock within milliseconds of its release; the lock of a process that died ends with its lease, and
// that of a slow one is renewed for as long as the process lives.
//
// All processes that share a storage must have these locks: the storage's own are not taken any more.
//
// # When Redis cannot be reached
//
// No certificate is obtained or renewed: Lock and TryLock return client.ErrUnreachable, and certmagic
// tries again later. A process that waits in line rides out an outage of up to one lease. Certificates
// that are there are served; certmagic takes no lock for that.
//
// # When a lock is lost
//
// In an outage that is longer than the lease, by a failover, or by an operator who breaks it, another
// process may begin the same work. certmagic asks for its lock's lease before each try to obtain or to
// renew a certificate (RenewLockLease): it gives up there if the lock is lost. Within a try it cannot be
// told, and may order a certificate that another process orders too; its locks are made for that to be
// rare, and harmless. It logs what Unlock returns.
package holdfastcertmagic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast/client"
)

// Storage is a [certmagic.Storage] with the files of another one, and with locks of Holdfast. It is
// also a [certmagic.TryLocker] and a [certmagic.LockLeaseRenewer]. It is safe for concurrent use.
type Storage struct {
	certmagic.Storage // for all but the locks

	client *client.Client
	opts   []client.Option

	mu   sync.Mutex
	held map[string][]*client.Lock // by name, the oldest first: all but the last one are lost
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// NewStorage returns files with locks of Holdfast. They are named "certmagic:" and certmagic's name;
// the client's Prefix keeps the locks of one storage apart from another's. opts change the locks.
func NewStorage(c *client.Client, files certmagic.Storage, opts ...client.Option) *Storage {
	// Goroutines of a process exclude each other by name, whatever context they have. A lock has the
	// context of nobody: that of the wait may be over before the work is.
	opts = append([]client.Option{client.WithMaxWait(0), client.WithoutReentry(), client.WithLockContext(context.Background())}, opts...)
	return &Storage{Storage: files, client: c, opts: opts, held: map[string][]*client.Lock{}}
}

// String names the storage in certmagic's log.
func (s *Storage) String() string { return fmt.Sprintf("Holdfast's locks over %v", s.Storage) }

// Lock waits in line for the lock until ctx ends.
//
// Errors: as client.Acquire.
func (s *Storage) Lock(ctx context.Context, name string) error {
	lock, err := s.client.Acquire(ctx, "certmagic:"+name, s.opts...)
	if err != nil {
		return err
	}
	s.add(name, lock)
	return nil
}

// TryLock takes the lock if it is free. It returns false if another has it.
//
// Errors: as client.TryAcquire, client.ErrBusy excepted.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lock, err := s.client.TryAcquire(ctx, "certmagic:"+name, s.opts...)
	var busy *client.BusyError
	if errors.As(err, &busy) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.add(name, lock)
	return true, nil
}

// RenewLockLease asks the server whether the lock is still held, and starts its lease anew. The lease
// is that of the client: a lock is renewed for as long as its process lives, so that it needs no lease
// as long as the work, and a crash does not hold it for so long.
//
// Errors: client.ErrLost when the lock is lost, client.ErrNotHeld without a Lock, and as
// client.Lock.Renew.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	held := s.held[name]
	s.mu.Unlock()
	if len(held) == 0 {
		return fmt.Errorf("holdfast: certmagic: renew %q: %w", name, client.ErrNotHeld)
	}
	return held[0].Renew(ctx)
}

// Unlock gives the lock back. It blocks for one round trip, and while Redis cannot be reached until
// ctx ends or the lease has ended.
//
// Errors: client.ErrLost when the lock was lost since Lock: the work may have run beside another
// process; client.ErrNotHeld without a Lock; and as client.Lock.Release.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	held := s.held[name]
	if len(held) == 0 {
		s.mu.Unlock()
		return fmt.Errorf("holdfast: certmagic: unlock %q: %w", name, client.ErrNotHeld)
	}
	// The oldest: if it is another goroutine's, it is one that was lost, and what is still held is held
	// until that goroutine has called too.
	lock := held[0]
	if s.held[name] = held[1:]; len(held) == 1 {
		delete(s.held, name)
	}
	s.mu.Unlock()
	return lock.Release(ctx)
}

func (s *Storage) add(name string, lock *client.Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], lock)
}
