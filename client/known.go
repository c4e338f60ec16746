package client

import "time"

// What makes a lock one that the server tells of: the inbox counts it on its slot's channel, and
// the tracking cache watches its key. Locks that are held only briefly pay nothing for it.

// introduce makes the lock known, at its first renewal or look.
func (h *held) introduce() {
	watch, keep := h.strange()
	if !watch && !keep {
		return
	}
	channel := ""
	if keep {
		channel = h.inbox.Keep(h.slot())
	}
	if watch {
		h.cache.Watch(h.key, h.owner)
	}
	h.known(channel, watch)
}

// heard makes a lock known that was handed over by a message: a break is told of in the same way.
func (h *held) heard() {
	if kept := h.inbox.Keep(h.slot()); kept != "" {
		h.known(kept, false)
	}
}

// known notes that the inbox and the cache count the lock, or that it waits for its slot's
// subscription, and undoes that if it was closed meanwhile.
func (h *held) known(channel string, watched bool) {
	h.registry.add(h.owner, h)
	h.forget(h.acquaint(channel, watched))
}

func (h *held) in(slot uint16) bool { return h.slot() == slot }

// broken ends the lock if it has this token. One of several servers may have a higher one.
func (h *held) broken(fence int64, reason string) {
	if h.first <= fence {
		_ = h.refused(ErrBroken, reason)
	}
}

// noticed makes the lock be looked at soon.
func (h *held) noticed(now time.Time) {
	h.notice(now)
	h.keepalive.update(&h.entry)
}

// tellRenewal tells the Observer what the server answered to a renewal, of a lock that is not over.
func (h *held) tellRenewal(sent time.Time, err error, ours bool) {
	if h.observer == nil || h.observer.Renewed == nil {
		return
	}
	t := h.holder()
	if t == nil {
		return
	}
	if err == nil && !ours {
		err = ErrTaken
	}
	h.observer.Renewed(Renewal{Name: h.name, Hold: t, Took: time.Since(sent), Err: overdue(err)})
}
