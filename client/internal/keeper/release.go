// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/functions"
)

// Everything that is given back is given back by an Undo, so there is one backoff, and one place that
// knows when nothing can be left. Release only makes the first call itself, in the goroutine of its
// caller.

// end ends a lease that nobody works under any more. It returns the lock's Undo, and the local deadline.
// last is the last token that was used.
func end(h *holding.Holding, last int64, again bool) (u *Undo, until time.Time) {
	u = &Undo{Key: h.Key, Owner: h.Owner, Hold: h.Hold, Worked: true, Again: again}
	if h.Top > h.First {
		u.Token = last
	}
	until, u.Until = h.End()
	return u, until
}

// Ride is a call that goes in one pipeline with a release, behind it, or with what others ask. Without a Call,
// Answered is only told that the release has an answer, or none.
type Ride struct {
	Call     fcall.Call
	Length   time.Duration // of the lease that it asks for
	Answered func(o fcall.Outcome, sent time.Time)

	undo *Undo // see Undo.After
}

// answered notes an answer to a Ride, or that there is none.
func (k *Keeper) answered(r *Ride, o fcall.Outcome, sent time.Time) {
	r.Answered(o, sent)
	if u := r.undo; u != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		u.at = time.Now()
		k.update(u, u.at)
	}
}

// Release gives a lock back that was worked under. It blocks until the server has answered, ctx ends
// or the lease is over; the Undo goes on after that. A context that is over already still releases.
//
// Errors: what LostError makes when the server says that it was not ours, and those of fcall.
func (k *Keeper) Release(ctx context.Context, h *holding.Holding, last int64, ride *Ride) error {
	u, until := end(h, last, h.Doubt)
	u.Final = h.Final
	k.mu.Lock()
	k.update(h, time.Time{}) // it is over
	k.mu.Unlock()
	caller, over := ctx, ctx.Err() != nil
	ctx, cancel := within(caller, until)
	defer cancel()
	r, err := k.first(ctx, u.call(), ride)
	u.finished(err)
	if err == nil {
		h.Close()
		if u.Again || r.Spent || !r.Yes { // a call may run late, or another server may have it
			u.Again = u.Again || !r.Yes
			u.at, u.round = time.Now().Add(again[0]), 1 // the server has answered once
			k.Undo(u)
		}
		return said(h, r)
	}
	u.unknown, u.Done = fcall.Unknown(err), make(chan fcall.Outcome, 1)
	u.pause = firstPause
	done := u.Done
	k.undo(h, u)
	if !errors.Is(err, fcall.ErrUnreachable) {
		if ctx.Err() == nil {
			return err
		}
		err = errLate
	}
	if !over && caller.Err() == context.Canceled { // meanwhile: as if before
		ctx, cancel = within(caller, until)
		defer cancel()
	}
	select {
	case o := <-done:
		if o.Err != nil {
			return err
		}
		return said(h, o.Reply)
	case <-ctx.Done():
		return err
	}
}

var errLate = fmt.Errorf("%w: no answer in time", fcall.ErrUnreachable)

// first makes the first call of a release.
func (k *Keeper) first(ctx context.Context, release fcall.Call, ride *Ride) (fcall.Reply, error) {
	if ride == nil {
		return k.Backend.Do(ctx, release)
	}
	sent := time.Now()
	if ride.Call.Verb == "" {
		r, err := k.Backend.Do(ctx, release)
		k.answered(ride, fcall.Outcome{Reply: r, Err: err}, sent)
		return r, err
	}
	ctx, cancel := context.WithCancel(ctx) // as Do does by itself, Send is to end with the client
	defer cancel()
	defer context.AfterFunc(k.ctx, cancel)()
	o := k.Backend.Send(ctx, []fcall.Call{release, ride.Call})
	k.answered(ride, o[1], sent)
	return o[0].Reply, o[0].Err
}

// said is the error of a release that a server answered; nil: it was ours.
func said(h *holding.Holding, r fcall.Reply) error {
	switch {
	case r.Yes:
		return nil
	case r.Why == functions.WhyBroken:
		return h.LostError(h.Holder(), holding.ErrBroken, r.Reason)
	}
	return h.LostError(h.Holder(), holding.ErrTaken, "")
}

// GiveUp gives a lock back in the background whose work was ended: by the clock, by a limit, or by a server
// that said that it is not ours. Another one may have it.
func (k *Keeper) GiveUp(h *holding.Holding, last int64) {
	u, _ := end(h, last, true)
	k.undo(h, u)
}

// undo replaces a lock by its Undo: there is no time between.
func (k *Keeper) undo(h *holding.Holding, u *Undo) {
	k.Undo(u)
	k.Update(h)
	h.Close()
}

// Withdraw gives a lock back in the background that nobody worked under: no minimum is kept.
func (k *Keeper) Withdraw(h *holding.Holding) {
	u, _ := end(h, 0, h.Doubt)
	u.Worked, u.Token = false, 0
	if h.Hold == "" {
		u.Token = h.First
	}
	k.undo(h, u)
}

// within is the context of a release: no longer than the lease, and for a moment if it is over
// already. A lease that is longer than rueidis waits for an answer needs no timer.
func within(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return context.WithTimeout(context.WithoutCancel(ctx), overWait)
	}
	if time.Until(until) < patientLease {
		return context.WithDeadline(ctx, until)
	}
	return ctx, func() {}
}
