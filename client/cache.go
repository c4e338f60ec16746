package client

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// What the server told may be kept as long as it promises to say when the key changes: client-side caching
// (https://redis.io/docs/latest/develop/reference/client-side-caching/). It is a hint, never the proof: it answers Try
// and InspectCached without a round trip, and makes the holder of a key that changed look again. Every decision is a
// function's, and an entry is never believed beyond the lease that it tells of.
//
// The connections are in mode OPTIN NOLOOP: only calls sent right behind CLIENT CACHING YES are tracked, so that short
// critical sections cost nothing, and this client's own writes are not announced: it drops those entries itself.
const (
	maxViews    = 10_000                 // keys remembered; then all are forgotten
	clusterView = 5 * time.Second        // Cluster: a redirected call loses its tracking unnoticed, so believe it no longer
	lookPause   = 100 * time.Millisecond // between two looks of a holder: joining waiters change the key too
)

type cache struct {
	client *Client
	on     atomic.Bool
	warned sync.Once
	size   atomic.Int64 // of views: an empty cache costs the other calls no lock

	mu      sync.Mutex
	views   map[string]*view
	holders map[string]*held // by key: whom a change concerns
}

// view is what is known of one key. busy and info are nil until a tracked call filled them.
type view struct {
	busy    *BusyError
	info    *Info
	at      time.Time // when busy or info was asked for
	until   time.Time
	changes int // heard of, or made: what was asked before one is not stored after it
}

// question is a view as it was when the server was asked; the zero value stores nothing.
type question struct {
	view    *view
	changes int
}

func (v *view) forget() {
	v.busy, v.info = nil, nil
	v.changes++
}

func newCache(c *Client) *cache {
	return &cache{client: c, views: map[string]*view{}, holders: map[string]*held{}}
}

// busy is a Try answered from memory; nil: ask. There is a question if the key was found busy before, so that tracking
// it pays.
func (k *cache) busy(key string) (*BusyError, question) {
	if k.size.Load() == 0 {
		return nil, question{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	v := k.views[key]
	if v == nil {
		return nil, question{}
	}
	now := time.Now()
	if v.busy == nil || !now.Before(v.until) {
		return nil, question{v, v.changes}
	}
	answer := *v.busy
	answer.Remaining -= now.Sub(v.at)
	return &answer, question{}
}

// info is InspectCached answered from memory; nil: ask.
func (k *cache) info(key string) (*Info, question) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, now := k.view(key), time.Now()
	if v.info == nil || !now.Before(v.until) {
		return nil, question{v, v.changes}
	}
	answer := *v.info
	answer.Age = now.Sub(v.at)
	answer.Remaining = max(0, answer.Remaining-answer.Age)
	return &answer, question{}
}

// notice that the key was found busy: the next one who tries makes the server tell of its changes.
func (k *cache) notice(key string) {
	if k.on.Load() {
		k.mu.Lock()
		k.view(key)
		k.mu.Unlock()
	}
}

// view returns the key's view, a new one if there is none. k.mu is held.
func (k *cache) view(key string) *view {
	v := k.views[key]
	if v == nil {
		if len(k.views) >= maxViews {
			clear(k.views)
		}
		v = &view{}
		k.views[key] = v
		k.size.Store(int64(len(k.views)))
	}
	return v
}

// keep stores the answer to a question that was sent at `sent`, unless the key changed meanwhile.
func (k *cache) keep(q question, busy *BusyError, info *Info, sent time.Time, lease time.Duration) {
	if !k.on.Load() || q.view == nil {
		return
	}
	if k.client.slotted {
		lease = min(lease, clusterView)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if v := q.view; v.changes == q.changes {
		v.busy, v.info, v.at, v.until = busy, info, sent, sent.Add(lease)
	}
}

// drop forgets what was known of a key that this client just changed, or may have.
func (k *cache) drop(key string) {
	if k.size.Load() == 0 {
		return
	}
	k.mu.Lock()
	if v := k.views[key]; v != nil {
		v.forget()
	}
	k.mu.Unlock()
}

// invalidated is what rueidis calls when keys were changed by others: with nil when all may have been (a lost connection, a
// FLUSHALL). It must be fast.
func (k *cache) invalidated(messages []rueidis.RedisMessage) {
	var look []*held
	k.mu.Lock()
	if messages == nil {
		for _, v := range k.views {
			v.forget()
		}
		for _, h := range k.holders {
			look = append(look, h)
		}
	}
	for _, m := range messages {
		key, _ := m.ToString()
		if v := k.views[key]; v != nil {
			v.forget()
		}
		if h := k.holders[key]; h != nil {
			look = append(look, h)
		}
	}
	k.mu.Unlock()
	for _, h := range look {
		h.current().look()
	}
}

// watch makes changes of h's key concern it. It returns false if there is no tracking.
func (k *cache) watch(h *held) bool {
	if !k.on.Load() {
		return false
	}
	h.mu.Lock()
	h.tracked = true
	h.mu.Unlock()
	k.mu.Lock()
	k.holders[h.key] = h
	k.mu.Unlock()
	return true
}

func (k *cache) unwatch(h *held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.holders[h.key]; now != nil && now.owner == h.owner {
		delete(k.holders, h.key)
	}
}

// off ends the use of tracking: the server, a proxy or an ACL does not have it.
func (k *cache) off(err error) {
	k.on.Store(false)
	k.warned.Do(func() {
		k.client.log.Warn("holdfast: no client-side caching here: Try always asks the server, and the loss of a held lock is noticed at the next renewal", "error", err)
	})
}

// look renews soon because the key was changed by somebody: at once after a quiet time, else a little later.
func (h *held) look() {
	h.mu.Lock()
	if h.set.noRenewal || h.renewAt.IsZero() {
		h.mu.Unlock()
		return
	}
	at := time.Now()
	if soon := h.looked.Add(lookPause); soon.After(at) {
		at = soon
	}
	if at.Before(h.renewAt) {
		h.renewAt, h.looking = at, true
	}
	h.mu.Unlock()
	h.client.renewals.update(h)
}
