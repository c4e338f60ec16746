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
// No certificate is obtained or renewed: Lock tries until its context ends, and TryLock returns
// client.ErrUnreachable. Certificates that are there are served; certmagic takes no lock for that.
//
// # When a lock is lost
//
// In an outage that is longer than the lease, by a failover, or by an operator who breaks it, another
// process may begin the same work. Where certmagic tries again and again (ObtainCertAsync and RenewCertAsync,
// as ManageAsync has it), it asks for its lock's lease before each try (RenewLockLease): a lock that is lost is
// waited for and taken again there, and certmagic then sees what the other process has stored. Within a
// try, and in calls without retries, it cannot be told, and may order a certificate that another process
// orders too; its locks are made for that to be rare, and harmless. The client logs the loss.
//
// Goroutines of a process are not told apart, since certmagic has only names: after a loss one may wait
// in RenewLockLease while another one goes on with its lock.
package holdfastcertmagic

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// each caller between Lock and Unlock has one of them, whichever, unless it waits in RenewLockLease
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

// String names the storage in certmagic's log. Of files without a name of their own it is the type: their
// fields may be secret, or change meanwhile.
func (s *Storage) String() string {
	if named, ok := s.Storage.(fmt.Stringer); ok {
		return "Holdfast's locks over " + named.String()
	}
	return fmt.Sprintf("Holdfast's locks over %T", s.Storage)
}

// outagePause is between two tries of Lock while Redis cannot be reached.
const outagePause = time.Second

// Lock waits in line for the lock until ctx ends. It rides out outages, however long: certmagic does not
// repeat what failed for want of a lock.
//
// Errors: as client.Acquire; client.ErrUnreachable only when ctx ends in an outage.
func (s *Storage) Lock(ctx context.Context, name string) error {
	for {
		lock, err := s.client.Acquire(ctx, "certmagic:"+name, s.opts...)
		if err == nil {
			s.add(name, lock)
			return nil
		}
		if !errors.Is(err, client.ErrUnreachable) {
			return err
		}
		select {
		case <-time.After(outagePause):
		case <-ctx.Done():
			return err
		}
	}
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
// as long as the work, and a crash does not hold it for so long. A lock that is lost is waited for as in
// Lock, and taken again.
//
// Errors: client.ErrNotHeld without a Lock; as client.Lock.Renew, client.ErrLost excepted; and as
// client.Acquire: the lock is then tried for by the next call.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	for {
		lock := s.oldest(name)
		if lock == nil {
			return fmt.Errorf("holdfast: certmagic: renew %q: %w", name, client.ErrNotHeld)
		}
		if err := lock.Renew(ctx); !gone(err) {
			return err
		}
		// certmagic repeats only what it does under the lock, for 30 days, and not the Lock: without
		// one it would not come to its work in all that time. The lost one is not there for the others
		// meanwhile: one of them may have the lock that is waited for here, and gives that back.
		if s.remove(name, lock) {
			return s.again(ctx, name, lock)
		}
	}
}

// again takes the lock in the place of a lost one.
func (s *Storage) again(ctx context.Context, name string, lost *client.Lock) error {
	_ = lost.Release(ctx) // another server may have it still, or it is ours for its grace
	err := s.Lock(ctx, name)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held[name] = slices.Insert(s.held[name], 0, lost) // for the next call, or the Unlock
	}
	return err
}

// Unlock gives the lock back. It blocks for one round trip, and while Redis cannot be reached until
// ctx ends or the lease has ended. It is no error that the lock was lost since Lock, or that its lease has
// ended here: there is nothing to give back, and certmagic keeps a lock that Unlock fails for in its list of
// those to give back.
//
// Errors: client.ErrNotHeld without a Lock; and as client.Lock.Release, client.ErrLost excepted, and
// client.ErrUnreachable while ctx has not ended.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	// The oldest: if it is another goroutine's, it is one that was lost, and what is still held is held
	// until that goroutine has called too.
	lock := s.oldest(name)
	for lock != nil && !s.remove(name, lock) {
		lock = s.oldest(name)
	}
	if lock == nil {
		return fmt.Errorf("holdfast: certmagic: unlock %q: %w", name, client.ErrNotHeld)
	}
	err := lock.Release(ctx)
	if gone(err) || errors.Is(err, client.ErrUnreachable) && ctx.Err() == nil { // the lease has ended
		return nil
	}
	return err
}

// gone reports whether an error says that a lock was lost, also if again has released it since.
func gone(err error) bool { return errors.Is(err, client.ErrLost) || errors.Is(err, client.ErrNotHeld) }

// oldest is nil without a Lock.
func (s *Storage) oldest(name string) *client.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held[name]) == 0 {
		return nil
	}
	return s.held[name][0]
}

// remove reports whether the lock was still there.
func (s *Storage) remove(name string, lock *client.Lock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held[name]
	i := slices.Index(held, lock)
	if i < 0 {
		return false
	}
	if s.held[name] = slices.Delete(held, i, i+1); len(held) == 1 {
		delete(s.held, name)
	}
	return true
}

func (s *Storage) add(name string, lock *client.Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], lock)
}
