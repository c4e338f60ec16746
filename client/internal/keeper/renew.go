// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/functions"
)

// step does what is due for a lock at now.
func (k *Keeper) step(h *holding.Holding, now time.Time) {
	for {
		action, ending := h.Step(now)
		if ending != nil {
			k.ended(ending)
		}
		switch action {
		case lease.None:
			return
		case lease.Renew, lease.Verify, lease.Look:
			s := sending{holding: h, action: action}
			h.Tell(func(l *lease.Lease) { s.length, s.apart = l.Length(), l.Until().Sub(now) < l.Length()/2 })
			k.send(h.Key, h.Terms.Replicas, false, s)
		case lease.Expire, lease.GiveBack:
			k.GiveUp(h, h.Holder().Fence)
		}
	}
}

// ended ends the contexts of a holder's work, and notifies those whom that concerns.
func (k *Keeper) ended(e *holding.Ending) {
	if e.First {
		e.Cancel()
	}
	if e.Gone {
		k.OnGone(e.Holding)
	}
	k.OnEnded(e)
}

// Lose ends a lock that a server says is not ours, and returns the cause. What another server may
// have of it is given back when its holders have left.
func (k *Keeper) Lose(h *holding.Holding, said fcall.Reply) error {
	why, reason := error(holding.ErrTaken), ""
	if said.Why == functions.WhyBroken {
		why, reason = holding.ErrBroken, said.Reason
	}
	if e := h.Lose(why, reason, (*lease.Lease).Refuse); e != nil {
		k.ended(e)
		h.Close()
	}
	k.fails(h, false)
	k.Update(h)
	return h.Holder().Cause()
}

// Renewal is what a lock is renewed by. It names the token, so that a later lock of the same owner is
// not renewed, and the hold, so that one that the server has forgotten is not renewed by way of
// another.
func Renewal(h *holding.Holding, length time.Duration) fcall.Call {
	return fcall.Call{Verb: fcall.Renew, Key: h.Key, Owner: h.Owner, Hold: h.Hold, TTL: fcall.TTL(length), Fence: h.First,
		Replicas: h.Terms.Replicas, ReplicaWait: h.Terms.ReplicaWait}
}

// Renewed notes what became of a renewal, and frees the slot.
func (k *Keeper) Renewed(h *holding.Holding, sent time.Time, o fcall.Outcome) {
	ours := o.Yes && o.Fence == h.First
	switch {
	case o.Err != nil:
		h.Tell(func(l *lease.Lease) { l.Failed(time.Now()) })
	case ours:
		k.fails(h, false)
		h.Tell(func(l *lease.Lease) { l.Renewed(lease.At(time.Now(), sent)) })
	}
	if t := h.Holder(); t.Cause() == nil {
		err := o.Err
		if err == nil && !ours {
			err = holding.ErrTaken
		}
		k.OnRenewed(t, time.Since(sent), err)
	}
	if o.Err == nil && !ours {
		_ = k.Lose(h, o.Reply)
	}
	k.Update(h)
}

// call is what to send.
func (s sending) call(k *Keeper) fcall.Call {
	h := s.holding
	if s.ride != nil {
		return s.ride.Call
	}
	switch s.action {
	case lease.Look:
		return fcall.Call{Verb: fcall.Inspect, Key: h.Key, Tracked: k.watch(h)}
	case lease.Verify: // prolongs nothing, and says why if the lock is not ours
		return Renewal(h, shortest)
	}
	return k.Tracked(h, s.length)
}

// Tracked is a Renewal after which the server tells of the next change of the key, where it can. Without
// that it would not tell of one any more: the renewal itself is a change.
func (k *Keeper) Tracked(h *holding.Holding, length time.Duration) fcall.Call {
	c := Renewal(h, length)
	c.Tracked = k.watch(h) && c.Replicas == 0
	return c
}

// watch has the server's tracking make the lock look at its key, and reports whether it does. Each renewal
// of another holder changes the key of a limited or shared lock: nobody wants to hear of that. A look there
// finds no owner, and so is verified.
func (k *Keeper) watch(h *holding.Holding) bool {
	if !k.Cache.On() || h.Terms.Crowd != 0 {
		return false
	}
	if h.Watched.CompareAndSwap(false, true) {
		h.Finally(k.Cache.Watch(h.Key, func() { k.Notice(h) }))
	}
	return true
}

// Notice has the lock look at its key soon, which may have changed.
func (k *Keeper) Notice(h *holding.Holding) {
	h.Tell(func(l *lease.Lease) { l.Noticed(time.Now()) })
	k.Update(h)
}

// answered notes what became of a sending.
func (s sending) answered(k *Keeper, sent time.Time, o fcall.Outcome) {
	h := s.holding
	switch {
	case s.ride != nil:
		k.answered(s.ride, o, sent)
	case s.action == lease.Look:
		h.Tell(func(l *lease.Lease) {
			if o.Err != nil {
				l.LookFailed(time.Now())
			} else {
				l.Looked(o.Yes && o.Holder == h.Owner && o.Fence == h.First)
			}
		})
		k.Update(h)
	default:
		if s.action == lease.Renew && o.Err != nil {
			k.fails(h, true)
		}
		k.Renewed(h, sent, o)
	}
}

// late notes an answer to a renewal that was asked for again meanwhile.
func (s sending) late(k *Keeper, sent time.Time, o fcall.Outcome) {
	if h := s.holding; s.action == lease.Renew && o.Err == nil && o.Yes && o.Fence == h.First {
		k.fails(h, false)
		h.Tell(func(l *lease.Lease) { l.Late(lease.At(time.Now(), sent), s.length) })
		k.Update(h)
	}
}

// failed reports whether a renewal was sent in vain.
func (s sending) failed(o fcall.Outcome) bool {
	return o.Err != nil && s.holding != nil && s.action != lease.Look && !errors.Is(o.Err, fcall.ErrNotReplicated)
}
