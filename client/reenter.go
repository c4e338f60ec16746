package client

import (
	"context"
	"time"
)

// outer is the lock of this name that ctx was taken under, if it is to be re-entered.
func (a *attempt) outer(ctx context.Context) *held {
	h, _ := ctx.Value(heldKey{a.client, a.key}).(*held)
	if h == nil || a.set.owner != "" && a.set.owner != h.owner {
		return nil
	}
	return h
}

// reenter adds a hold to a lock of this client. It changes nothing else of it: the settings are those of the first hold.
func (a *attempt) reenter(ctx context.Context, h *held) (*Lock, error) {
	h.mu.Lock()
	lost, done := h.lost, len(h.locks) == 0
	h.mu.Unlock()
	if lost != nil {
		return nil, opError("re-enter", a.name, lost)
	}
	if done {
		return nil, opError("re-enter", a.name, ErrNotHeld)
	}
	hold, sent := a.client.holdID(), time.Now()
	r, err := a.client.acquireHold(ctx, h.key, h.owner, h.set.ttl, hold)
	if err == nil && (!r.yes || r.fence != h.first) {
		err = h.gone(ctx)
		if r.yes { // it had ended and this call took it anew
			a.giveUp(h.owner, hold)
		}
	} else if err != nil && unknown(err) {
		a.giveUp(h.owner, hold)
	}
	if err != nil {
		return nil, opError("re-enter", a.name, err)
	}
	h.extend(sent)
	l, err := h.lock(ctx, hold)
	if err != nil {
		a.giveUp(h.owner, hold)
		return nil, opError("re-enter", a.name, err)
	}
	return l, nil
}
