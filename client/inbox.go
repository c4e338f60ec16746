package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/redis/rueidis"
)

const (
	idleSlot = 30 * time.Second // an unused subscription of a slot in Cluster is given up after this
	// A slot that moves ends its subscription, and rueidis may subscribe again by a stale map: at the demoted primary, which
	// takes it and hears nothing. So it is done once more when the map is fresh.
	settleTime = 2 * time.Second
	watchSlots = 256 // holders make the client listen on at most so many slots; waiters on as many as they need
)

// inbox hears what the library publishes to this client: grants for those who wait, and breaks for those who hold. There is
// one channel per hash slot that it is needed in (a shard channel belongs to a slot), one in all without Cluster.
// Messages can be lost, so nothing depends on them alone.
type inbox struct {
	client *Client
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	subs    map[uint16]*subscription
	holders map[string]*held // by owner: who can be told of a break
	warned  bool
	echoed  uint64 // numbers the echoes
}

// subscription is one channel. All fields but the first two are guarded by inbox.mu.
type subscription struct {
	slot    uint16
	channel string
	seats   map[string]*seat
	echoes  map[string]chan struct{} // closed when the echo has come back
	watched int                      // holders that left this channel with their lock
	ready   bool                     // the server confirmed it
	refused bool                     // the server does not allow it: poll
	changed chan struct{}
	stop    context.CancelFunc
	idle    *time.Timer
}

// seat is where one waiting owner gets its grant.
type seat struct {
	inbox  *inbox
	sub    *subscription
	owner  string
	grants chan grant // holds the latest only
}

type grant struct {
	fence int64
	until int64 // milliseconds, the server's clock
}

// seatState is what a waiter must know of its subscription: "" for channel means that it must poll. changed is closed
// when it must ask again, because messages may have been lost.
type seatState struct {
	channel string
	changed <-chan struct{}
}

func (s seatState) stale() bool {
	select {
	case <-s.changed:
		return true
	default:
		return false
	}
}

func newInbox(c *Client) *inbox {
	in := &inbox{client: c, subs: map[uint16]*subscription{}, holders: map[string]*held{}}
	in.ctx, in.cancel = context.WithCancel(context.Background())
	return in
}

// channel is in the slot, whatever the prefix: the prefix stays in front so that one ACL pattern covers keys and channels.
func (in *inbox) channel(slot uint16) string {
	c := in.client
	name := "inbox:" + c.identity[strings.LastIndexByte(c.identity, ':')+1:]
	if !c.slotted || strings.IndexByte(c.cfg.Prefix, '{') >= 0 {
		return c.cfg.Prefix + name
	}
	return c.cfg.Prefix + "{" + cluster.TagFor(slot) + "}" + name
}

// listening tells whether grants for locks of the slot would be heard now.
func (in *inbox) listening(slot uint16) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.subs[slot]
	return s != nil && s.ready
}

// listen returns the slot's subscription and starts it if need be. in.mu is held.
func (in *inbox) listen(slot uint16) *subscription {
	if s := in.subs[slot]; s != nil {
		return s
	}
	ctx, stop := context.WithCancel(in.ctx)
	s := &subscription{slot: slot, channel: in.channel(slot), seats: map[string]*seat{}, echoes: map[string]chan struct{}{}, changed: make(chan struct{}), stop: stop}
	in.subs[slot] = s
	in.done.Add(1)
	go in.receive(ctx, s)
	return s
}

// seat makes the client hear grants for owner. Errors: ErrClosed.
func (in *inbox) seat(slot uint16, owner string) (*seat, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ctx.Err() != nil || in.client.closing.Err() != nil {
		return nil, ErrClosed
	}
	s := in.listen(slot)
	st := &seat{inbox: in, sub: s, owner: owner, grants: make(chan grant, 1)}
	s.seats[owner] = st
	return st, nil
}

func (st *seat) leave() {
	in, s := st.inbox, st.sub
	in.mu.Lock()
	defer in.mu.Unlock()
	if s.seats[st.owner] == st {
		delete(s.seats, st.owner)
	}
	in.rest(s)
}

// rest gives up a slot's subscription that stays unused. in.mu is held.
func (in *inbox) rest(s *subscription) {
	if !in.client.slotted || len(s.seats)+s.watched > 0 || in.ctx.Err() != nil {
		return
	}
	if s.idle != nil {
		s.idle.Reset(idleSlot)
		return
	}
	s.idle = time.AfterFunc(idleSlot, func() {
		in.mu.Lock()
		unused := len(s.seats)+s.watched == 0 && in.subs[s.slot] == s
		if unused {
			delete(in.subs, s.slot)
		}
		in.mu.Unlock()
		if unused {
			s.stop()
		}
	})
}

// ready blocks until the subscription is confirmed or refused, for a second at the most: then the waiter polls until
// it is.
func (st *seat) ready(ctx context.Context) (seatState, error) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	for {
		st.inbox.mu.Lock()
		s := st.sub
		state := seatState{changed: s.changed}
		if s.ready {
			state.channel = s.channel
		}
		settled := s.ready || s.refused
		st.inbox.mu.Unlock()
		if settled {
			return state, nil
		}
		select {
		case <-state.changed:
		case <-timer.C:
			return state, nil
		case <-ctx.Done():
			return state, ctx.Err()
		case <-st.inbox.ctx.Done():
			return state, ErrClosed
		case <-st.inbox.client.closing.Done():
			return state, ErrClosed
		}
	}
}

// receive keeps one channel subscribed. rueidis subscribes again by itself after a lost connection, and returns when the
// slot has moved or the primary was demoted: both are seen by the confirmations, after which every waiter asks again.
func (in *inbox) receive(ctx context.Context, s *subscription) {
	defer in.done.Done()
	c := in.client
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(event rueidis.PubSubSubscription) {
		if event.Channel == s.channel {
			in.set(s, event.Kind == "ssubscribe", false)
		}
	})
	moved := false
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		listening, cancel := hooked, context.CancelFunc(func() {})
		if moved {
			listening, cancel = context.WithTimeout(hooked, settleTime)
		}
		err := c.redis.Receive(listening, c.redis.B().Ssubscribe().Channel(s.channel).Build(), func(m rueidis.PubSubMessage) {
			in.deliver(s, m.Message)
		})
		settled := moved && listening.Err() != nil
		cancel()
		if ctx.Err() != nil {
			break
		}
		if moved = err == nil; settled {
			continue
		}
		refused := err != nil && errors.Is(classify(ctx, err), ErrDenied)
		in.set(s, false, refused)
		if refused {
			in.warn(err)
			pause = 30 * time.Second
		} else if err == nil {
			pause = 10 * time.Millisecond
		}
		if !pauseFor(ctx, pause) {
			break
		}
	}
	// rueidis leaves the channel subscribed when Receive is cancelled; then grants to it would not count as undeliverable.
	bye, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = c.redis.Do(bye, c.redis.B().Sunsubscribe().Channel(s.channel).Build()).Error()
}

// set notes what the server said of the subscription, and makes every waiter ask again.
func (in *inbox) set(s *subscription, ready, refused bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s.ready, s.refused = ready, refused
	close(s.changed)
	s.changed = make(chan struct{})
}

func (in *inbox) warn(err error) {
	in.mu.Lock()
	first := !in.warned
	in.warned = true
	in.mu.Unlock()
	if first {
		in.client.log.Warn("holdfast: no subscription is permitted, so waiting means polling; grant the channels of the prefix", "error", err)
	}
}

// remember that the server knows channel for h: a break of it will be told there.
func (in *inbox) remember(h *held, channel string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.subs[in.client.slot(h.key)]
	if s == nil || s.channel != channel || in.holders[h.owner] != nil {
		return
	}
	in.holders[h.owner] = h
	s.watched++
	h.mu.Lock()
	h.watched = true
	h.mu.Unlock()
}

// watch prepares h for news of a break and returns the channel to leave with its lock, "" if there is none (yet).
func (in *inbox) watch(h *held) string {
	slot := in.client.slot(h.key)
	in.mu.Lock()
	s := in.subs[slot]
	if s == nil && in.ctx.Err() == nil && len(in.subs) < watchSlots {
		s = in.listen(slot)
	}
	ready := s != nil && s.ready
	in.mu.Unlock()
	if !ready {
		return ""
	}
	in.remember(h, s.channel)
	return s.channel
}

func (in *inbox) unwatch(h *held) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.holders[h.owner] == nil {
		return
	}
	delete(in.holders, h.owner)
	if s := in.subs[in.client.slot(h.key)]; s != nil && s.watched > 0 {
		s.watched--
		in.rest(s)
	}
}

// close ends every subscription and waits for its goroutine.
func (in *inbox) close() {
	in.mu.Lock()
	in.cancel()
	for _, s := range in.subs {
		if s.idle != nil {
			s.idle.Stop()
		}
	}
	in.mu.Unlock()
	in.done.Wait()
}
