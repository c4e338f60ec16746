package client

import (
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// sending is an action of a lock's machine on its way to the server.
type sending struct {
	*held
	action lease.Action
}

// step does what is due at now, and returns what is left to send.
func (h *held) step(now time.Time) errand {
	for {
		action, e := h.due(now)
		switch {
		case e != nil:
			h.ended(e)
			continue
		case action == lease.None:
			return nil
		case action == lease.GiveBack:
			h.close()
		}
		return sending{h, action}
	}
}

// length is of the lease, also before RenewFor made it longer.
func (s sending) length() time.Duration {
	if s.action == lease.GiveBack {
		return max(s.leaseLength(), patient) // it is not urgent
	}
	return s.leaseLength()
}

// patient is the shortest length that an errand without hurry has: a sixth of it is what its
// pipeline may take.
const patient = 6 * moment

// pack puts the call into a pipeline. From its first renewal on, a lock is known to the server's
// tracking, and leaves the channel on which a break is told.
func (s sending) pack(p pipeline) {
	if s.action == lease.GiveBack {
		p.Leave(s.key, s.owner, s.hold, s.declined())
		return
	}
	s.introduce()
	tracked := s.tracks()
	if s.action == lease.Look {
		p.Look(tracked, s.key)
		return
	}
	length, channel, ok := s.renewal()
	if !ok { // a renewal could prolong what was left behind
		p.Look(false, s.key)
		return
	}
	p.Renew(tracked, s.key, s.renews(s.lasting(length), channel))
}

// copies are not asked for what is given back.
func (s sending) copies() fcall.Copies {
	if s.action == lease.GiveBack {
		return fcall.Copies{}
	}
	return s.terms.copies
}

// declined is the only token that may be given back; 0: any. What was granted here is known by its
// first one.
func (h *held) declined() int64 {
	return h.first
}

// lasting is a lease as the library takes it.
func (h *held) lasting(length time.Duration) string {
	if length == h.terms.Length {
		return h.terms.ttl
	}
	return fcall.TTL(length)
}

// answered notes what the server said. It returns false if the lock is not ours any more.
func (s sending) answered(sent time.Time, o fcall.Outcome) (ours bool) {
	yes := o.Reply.Yes
	switch s.action {
	case lease.Renew:
		yes = yes && o.Reply.Fence == s.first
	case lease.Look:
		yes = o.Standing.Held && o.Standing.Owner == s.owner && o.Standing.Fence == s.first
	}
	ours = s.note(s.action, sent, o.Err == nil, yes)
	if s.action == lease.Renew {
		s.tellRenewal(sent, o.Err, ours)
	}
	if o.Err == nil {
		s.cache.Drop(s.key)
	}
	s.keepalive.update(&s.entry)
	return ours
}

// taken ends the lock: it is another's.
func (s sending) taken() { _ = s.refused(ErrTaken, "") }
