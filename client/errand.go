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
		h.mu.Lock()
		action := h.machine.Step(now)
		why, over := endings[action]
		var e ending
		if over {
			e = h.end(why, "")
		}
		h.mu.Unlock()
		switch {
		case over:
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

// endings are the actions that end the work, and why.
var endings = map[lease.Action]error{
	lease.Expire:          ErrExpired,
	lease.StopMaxHold:     ErrMaxHold,
	lease.StopMaxRenewals: ErrMaxRenewals,
}

// length is of the lease, also before RenewFor made it longer.
func (s sending) length() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.terms.Length
	if s.machine.Length() > 0 {
		n = min(n, s.machine.Length())
	}
	if s.action == lease.GiveBack {
		return max(n, patient) // it is not urgent
	}
	return n
}

// patient is the shortest length that an errand without hurry has: a sixth of it is what its
// pipeline may take.
const patient = 6 * moment

// pack puts the call into a pipeline. From its first renewal on, a lock is known to the server's
// tracking, and leaves the channel on which a break is told.
func (s sending) pack(pipeline *fcall.Batch) {
	if s.action == lease.GiveBack {
		pipeline.Leave(s.key, s.owner, s.hold, s.declined())
		return
	}
	s.introduce()
	tracked := s.cache.On()
	if s.action == lease.Look {
		pipeline.Look(tracked, s.key)
		return
	}
	s.mu.Lock()
	over, length, channel := s.machine.State() > lease.Stopping, s.machine.Length(), s.channel
	s.mu.Unlock()
	if over { // it was released meanwhile: a renewal could prolong what was left behind
		pipeline.Look(false, s.key)
		return
	}
	pipeline.Renew(tracked, s.key, s.owner, s.lasting(length), channel, s.first)
}

// declined is the only token that may be given back; 0: any. What was granted here is known by its
// first one.
func (h *held) declined() int64 {
	if h.hold != "" {
		return 0 // several processes share the token
	}
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
	s.mu.Lock()
	ours = s.note(sent, o) || s.machine.State() > lease.Stopping
	s.mu.Unlock()
	if o.Err == nil {
		s.cache.Drop(s.key)
	}
	s.keepalive.update(&s.entry)
	return ours
}

func (s sending) note(sent time.Time, o fcall.Outcome) (ours bool) {
	switch {
	case o.Err != nil:
		s.machine.Failed(s.action, time.Now())
	case s.action == lease.GiveBack:
		s.machine.GaveBack()
	case s.action == lease.Look:
		if !o.Standing.Held || o.Standing.Owner != s.owner || o.Standing.Fence != s.first {
			return false
		}
		s.machine.Looked()
	case !o.Reply.Yes || o.Reply.Fence != s.first:
		return false
	default:
		s.machine.Renewed(sent)
	}
	return true
}

// taken ends the lock: it is another's.
func (s sending) taken() { _ = s.refused(ErrTaken, "") }
