// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// Option changes a setting for one call. Options are values: keep them in variables, and join them
// with WithOptions.
type Option func(*settings)

// WithOptions is several options as one; of two that set the same, the last one counts.
func WithOptions(opts ...Option) Option {
	return func(s *settings) {
		for _, o := range opts {
			if o != nil {
				o(s)
			}
		}
	}
}

// WithLease sets the lease for this call; see Config.Lease.
func WithLease(d time.Duration) Option { return func(s *settings) { s.Lease = d } }

// WithMaxWait bounds the wait of this call; zero leaves it to the context. See Config.MaxWait.
func WithMaxWait(d time.Duration) Option { return func(s *settings) { s.MaxWait = d } }

// WithGiveUpEarly fails at once when the wait is expected to take longer than the call may; see
// Config.GiveUpEarly. The minima of limited and shared holders are not expected.
func WithGiveUpEarly() Option { return func(s *settings) { s.GiveUpEarly = true } }

// WithPolling makes Acquire try that often, interval apart, instead of waiting in line. One try is
// TryAcquire with WithFreshAnswer. With 0 tries it waits in line, as without it. Fewer are ErrArgument, and
// with tries so is an interval that is not positive. A try that fails otherwise than by ErrBusy is the last
// one: it rides out no outage.
func WithPolling(tries int, interval time.Duration) Option {
	return func(s *settings) { s.tries, s.interval = tries, interval }
}

// WithoutRenewal lets the lock end with its first lease.
func WithoutRenewal() Option { return func(s *settings) { s.NoRenewal = true } }

// WithRenewal switches renewal on, every d; zero is the default, a third of the lease.
func WithRenewal(d time.Duration) Option {
	return func(s *settings) { s.NoRenewal, s.RenewEvery = false, d }
}

// WithMaxRenewals ends the work when the lease has been renewed n times by itself and would be
// again; see Config.MaxRenewals.
func WithMaxRenewals(n int) Option { return func(s *settings) { s.MaxRenewals = n } }

// WithMaxHold ends the work after d, and the lock after a further grace (zero: a third of the
// lease); see Config.MaxHold.
func WithMaxHold(d, grace time.Duration) Option {
	return func(s *settings) { s.MaxHold, s.Grace = d, grace }
}

// WithMinHold keeps the lock from others for at least d, also when it is released earlier; see
// Config.MinHold.
func WithMinHold(d time.Duration) Option { return func(s *settings) { s.MinHold = d } }

// WithReplicas waits until n replicas have acknowledged the lock, for d (zero: the default; at most an eighth of
// the lease); see Config.Replicas. n 0 asks for none. A lock that fewer have cannot be re-entered
// with it: that is ErrArgument.
func WithReplicas(n int, d time.Duration) Option {
	return func(s *settings) { s.Replicas, s.ReplicaWait = n, d }
}

// WithGuard makes the server remember for d before it grants the lock; see Config.Guard. 0 asks for
// none. A lock that was taken with less cannot be re-entered with more: that is ErrArgument.
func WithGuard(d time.Duration) Option { return func(s *settings) { s.Guard = d } }

// WithLabel shows a label to losers and operators; see Config.Label. It cannot be combined with
// WithOwner.
func WithLabel(label string) Option { return func(s *settings) { s.Label = label } }

// WithOwner takes or joins the lock as the owner of that name, for work that crosses processes.
// Each acquisition with an owner string that has the lock adds a hold, and the lock is free when
// all holds are released, or after [Client.ReleaseOwner]. Two that use one owner string do not
// exclude each other. A lock that was taken without WithOwner cannot be joined: that is
// ErrArgument, and so are MinHold, Once and OnceValue with it. Under the context of another owner's lock it
// does not re-enter: it waits for that lock, as anybody does.
func WithOwner(owner string) Option {
	return func(s *settings) { s.owner, s.owned = owner, true }
}

// WithLimit takes the lock beside other holders: it is granted while fewer than n, from 1 to 1000, have it,
// all by WithLimit, in the order of one line with those who want it otherwise. The limit is this call's, so
// that a deployment raises it process by process; to lower it throws nobody out. Each holder has a
// lease and a token of its own, and the slot that [Lock.Slot] says.
//
// The token fences what is a slot's own. Of what all holders share it does not: a resource that refuses
// a lower token than it has seen would refuse the earlier one of two that work beside one another.
//
// A call under the context of a limited lock re-enters that, also with another n; it cannot ask for the lock
// alone, or shared. The server is asked each time; that a lock was broken is noticed at once if it was waited
// for, else at its next renewal. It cannot be combined with WithOwner, and not be had on several servers. Of
// WithLimit and WithShared the last one counts.
func WithLimit(n int) Option {
	return func(s *settings) { s.crowd, s.limit, s.several = max(n, lease.Shared+1), n, true } // which is none either
}

// WithShared takes the lock beside all others that take it so, as readers do, while those who do not, the
// writers, have it alone. One line is for all, so writers are not kept out by readers that come later.
// Else it is as [WithLimit]. No upgrade: a call under its context cannot ask for the lock alone.
func WithShared() Option {
	return func(s *settings) { s.crowd, s.several = lease.Shared, true }
}

// WithLockContext makes parent the parent of the lock's context. The context of the call then
// bounds the wait only, which ends with parent too.
func WithLockContext(parent context.Context) Option { return func(s *settings) { s.parent = parent } }

// WithoutReentry takes a lock of its own also under the context of a lock of the same name, which
// is then waited for as any other's.
func WithoutReentry() Option { return func(s *settings) { s.alone = true } }

// WithFreshAnswer makes TryAcquire ask the server. Otherwise a lock that is known to be held is
// refused from memory, and what is known may be a moment old: the time that the news of a change is
// on its way, or a second in an outage.
func WithFreshAnswer() Option { return func(s *settings) { s.fresh = true } }
