package client

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
)

// journal tells the log of each change of state once, and of each lost lock.
type journal struct {
	log                              *slog.Logger
	observer                         *Observer
	outage, refused, untracked, deaf atomic.Bool // what it has been told
}

func (j *journal) once(told *atomic.Bool, text string, err error) {
	if !told.CompareAndSwap(false, true) {
		return
	}
	if err == nil {
		j.log.Warn(text)
	} else {
		j.log.Warn(text, "error", err)
	}
}

func (j *journal) unsubscribed(err error) {
	j.once(&j.refused, "holdfast: no subscription is permitted, so waiting means polling; grant the channels of the prefix", err)
}

func (j *journal) unheard() {
	j.once(&j.deaf, "holdfast: the subscription is not at the primary, so waiting means polling; do not send SSUBSCRIBE to replicas", nil)
}

func (j *journal) noTracking(err error) {
	j.once(&j.untracked, "holdfast: no client-side caching here: Try always asks the server, and the loss of a held lock is noticed at the next renewal", err)
}

// absent hears of a server that a quorum begins without.
func (j *journal) absent(addr []string, err error) {
	j.log.Warn("holdfast: no connection to a server of the quorum; it is tried again", "address", addr, "error", err)
}

// failed hears of renewals that were not answered.
func (j *journal) failed(locks int, err error) {
	if !errors.Is(err, context.Canceled) && j.outage.CompareAndSwap(false, true) {
		j.log.Warn("holdfast: renewals fail; they are tried again until the leases end", "locks", locks, "error", err)
		j.observer.connection(err)
	}
}

// answered hears of every answer of the server.
func (j *journal) answered() {
	if j.outage.Load() && j.outage.CompareAndSwap(true, false) {
		j.log.Info("holdfast: the server answers again")
		j.observer.connection(nil)
	}
}

// lost hears of each lock that ended before its release.
func (j *journal) lost(cause error) {
	var lost *LostError
	if errors.As(cause, &lost) && errors.Is(cause, ErrLost) {
		j.log.Warn("holdfast: lock lost", "lock", lost.Name, "fence", lost.Fence, "cause", lost.Err, "reason", lost.Reason)
	}
}

// unreleased hears of a release that did not reach the server.
func (j *journal) unreleased(name string, err error) {
	j.log.Warn("holdfast: release failed; the lease will end the lock", "lock", name, "error", err)
}
