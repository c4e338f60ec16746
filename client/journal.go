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
	j.once(&j.refused, "holdfast: the server permits no subscription; locks are safe, but those who wait ask again all the time "+
		"and get a lock later; grant the user the channels of the prefix (functions/README.md, ACL)", err)
}

func (j *journal) unheard() {
	j.once(&j.deaf, "holdfast: the server finds no subscriber on this client's channel; locks are safe, but those who wait ask again "+
		"all the time and get a lock later; if the client sends SSUBSCRIBE to replicas, keep it at the primary", nil)
}

func (j *journal) noTracking(err error) {
	j.once(&j.untracked, "holdfast: the server permits no client-side caching; locks are safe, but each try asks the server, and that a "+
		"held lock was taken away is noticed at its next renewal; grant the user CLIENT CACHING and TRACKING", err)
}

// absent hears of a server that a quorum begins without.
func (j *journal) absent(addr []string, err error) {
	j.log.Warn("holdfast: no connection to a server of the quorum; locks need a majority of them, and work without this one while there "+
		"is; it is tried again: look whether it runs, and at its address and password", "address", addr, "error", err)
}

// failed hears of renewals that were not answered.
func (j *journal) failed(locks int, err error) {
	if !errors.Is(err, context.Canceled) && j.outage.CompareAndSwap(false, true) {
		j.log.Warn("holdfast: the server does not renew locks; they are held until their leases end, and lost then; renewals are tried "+
			"again: bring the server back before", "locks", locks, "error", overdue(err))
		j.observer.connection(err)
	}
}

// answered hears of every answer of the server.
func (j *journal) answered() {
	if j.outage.Load() && j.outage.CompareAndSwap(true, false) {
		j.log.Info("holdfast: the server answers again; locks that were not reported lost are held and renewed: nothing is to be done")
		j.observer.connection(nil)
	}
}

// lost hears of each lock that ended before its release.
func (j *journal) lost(cause error) {
	var lost *LostError
	if !errors.As(cause, &lost) || !errors.Is(cause, ErrLost) {
		return
	}
	text := "holdfast: lock lost; its context is cancelled, and the work may have run beside another holder; check what it wrote, unless " +
		"the fencing token guards that"
	if errors.Is(lost.Err, ErrMaxHold) || errors.Is(lost.Err, ErrMaxRenewals) {
		text = "holdfast: lock ended by its limit; its context is cancelled, and it is released at the latest after Grace, whether the work " +
			"has stopped or not; make the work faster, or raise the limit"
	}
	j.log.Warn(text, "lock", lost.Name, "fence", lost.Fence, "cause", lost.Err, "reason", lost.Reason)
}

// unreleased hears of a release that did not reach the server.
func (j *journal) unreleased(name string, err error) {
	j.log.Warn("holdfast: release not confirmed; the work is over, and others get the lock when its lease ends at the latest; look at the "+
		"server if there are more of these", "lock", name, "error", err)
}
