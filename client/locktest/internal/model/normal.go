// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/bits"

	"github.com/holdfast-go/holdfast/client/internal/queue"
)

// Many states differ in names only. Each is brought into a normal form: tokens are numbered by
// their order, and clients are put in the order of what they do, so that one of each kind is
// explored.

// normalize brings a state into its normal form. It returns where each client went.
func (cfg *Config) normalize(s *State) (moved [maxClients]uint8) {
	cfg.forget(s)
	cfg.renumber(s)
	return cfg.sort(s)
}

// stale is a token that no lock has any more. Clients compare theirs with those of locks only.
const stale Token = 63

// renumber numbers the tokens, of which only the order matters. The time is above all of them.
func (cfg *Config) renumber(s *State) {
	locks := uint64(0)
	eachFence(s, func(t *Token) { locks |= 1 << *t })
	used := locks
	ordered := func(f func(*Token)) {
		for i := range s.Clients[:cfg.Clients] {
			c := &s.Clients[i]
			for _, t := range [...]*Token{&c.known.Above, &c.known.Has, &c.Call.Got, &c.Note.Fence} {
				f(t)
			}
		}
	}
	ordered(func(t *Token) { used |= 1 << *t })
	used &^= 1 | 1<<stale // 0 is none
	to := [64]Token{stale: stale}
	n := Token(0)
	for rest := used; rest != 0; rest &= rest - 1 {
		t := Token(bits.TrailingZeros64(rest))
		n++
		to[t] = n
	}
	rename := func(t *Token) { *t = to[*t] }
	eachFence(s, rename)
	ordered(rename)
	for i := range s.Clients[:cfg.Clients] {
		c := &s.Clients[i]
		for _, t := range [...]*Token{&c.Back.Fence, &c.Stray.Fence} {
			switch {
			case *t == 0:
			case locks>>*t&1 == 0:
				*t = stale
			default:
				*t = to[*t]
			}
		}
	}
	s.Now = n
}

// eachFence calls f for the tokens of locks.
func eachFence(s *State, f func(*Token)) {
	for _, l := range s.locks() {
		f(&l.Fence)
	}
}

// forget drops what has no effect any more.
func (cfg *Config) forget(s *State) {
	spent := s.Strayed >= cfg.Strays // nobody can decline a grant
	for i := range s.Clients[:cfg.Clients] {
		c := &s.Clients[i]
		state := c.at().state
		if spent && (c.Note.For == 2 || state == queue.Absent || state == queue.Held) {
			c.Note = Note{}
		}
		if c.Call.Status == Answered && c.Call.Yes == 0 || c.Call.Status == Gone {
			c.Call.Left = 0
		}
		if c.Call.Status == Gone {
			c.Call.Yes, c.Call.Got = 0, 0
		}
		c.known.Above = s.below(c, c.known.Above) // new tokens are above all, so the last one below is as good
		if c.Call.Yes == 0 {
			c.Call.Got = s.below(c, c.Call.Got)
		}
		if c.Call.Yes == 1 { // it is compared with those of locks and messages only
			s.outdate(c, &c.Call.Got)
		}
		if state == queue.Held || state == queue.Confirming {
			s.outdate(c, &c.known.Has)
		}
		s.callPresent(i)
	}
}

// outdate makes a token stale that no lock has, and no message to the client tells of.
func (s *State) outdate(c *Client, t *Token) {
	if f := *t; f != 0 && f != s.Main.Lock.Fence && f != s.Old.Lock.Fence && f != s.Replica.Fence && f != c.Note.Fence {
		*t = stale
	}
}

// below is the highest token that is not above another one, of those that a client may compare that with.
func (s *State) below(c *Client, t Token) (most Token) {
	for _, x := range [...]Token{s.Main.Lock.Fence, s.Old.Lock.Fence, s.Replica.Fence, c.Note.Fence, c.known.Has} {
		if x <= t {
			most = max(most, x)
		}
	}
	return most
}

// callPresent gives what is left of the acquisition before the name of the present one, if nothing is
// left of that, and it is over.
func (s *State) callPresent(i int) {
	c := &s.Clients[i]
	present, past := ownerOf(i, 0), ownerOf(i, 1)
	if c.at().state != queue.Absent || s.named(present) || !s.named(past) {
		return
	}
	names := identity
	names[past] = present
	s.renameOwners(&names)
	c.Stray.Past, c.Back.Past = 0, 0
	if c.Note.For == 2 {
		c.Note.For = 1
	}
}

// sort puts the clients in order. With Progress the first one stays: it is the one that is watched.
func (cfg *Config) sort(s *State) (moved [maxClients]uint8) {
	var order [maxClients]uint8
	var rank [maxClients]uint64
	for i := range order {
		order[i] = uint8(i)
		if i < cfg.Clients {
			rank[i] = s.view(i)
		}
	}
	first := 1
	if cfg.Progress {
		first = 2
	}
	same := true
	for i := first; i < cfg.Clients && !cfg.Joint; i++ {
		for j := i; j >= first && rank[order[j]] < rank[order[j-1]]; j-- {
			order[j], order[j-1] = order[j-1], order[j]
			same = false
		}
	}
	for to, from := range order {
		moved[from] = uint8(to)
	}
	if same {
		return moved
	}
	clients := s.Clients
	var names [2*maxClients + 1]Owner
	for to, from := range order {
		s.Clients[to] = clients[from]
		names[ownerOf(int(from), 0)], names[ownerOf(int(from), 1)] = ownerOf(to, 0), ownerOf(to, 1)
	}
	s.renameOwners(&names)
	return moved
}

// view is a number for all that concerns one client. Clients with the same one may change places.
func (s *State) view(i int) uint64 {
	c := &s.Clients[i]
	var h mix
	h.add(uint64(c.Queue)<<8 | uint64(c.Lease))
	h.add(pack(c.known.Above, c.known.Has, c.Timer, c.Void, c.Deaf, c.Polls, c.Rests<<2|c.More<<1|c.Dead, c.Link))
	h.add(pack(uint8(c.Call.Kind), uint8(c.Call.Status), uint8(c.Call.Left), c.Call.Yes, c.Call.Void, c.Call.Got, 0, 0))
	h.add(pack(uint8(c.Stray.Kind), c.Stray.Past, c.Stray.Link, c.Stray.Fence,
		uint8(c.Back.Kind), c.Back.Past, c.Back.Link, c.Back.Fence))
	h.add(pack(c.Note.For, uint8(c.Note.Left), c.Note.Fence, c.Note.Void, 0, 0, 0, 0))
	for _, l := range s.locks() {
		if l.Owner != 0 {
			h.add(1 | l.place(ownerOf(i, 0))<<8 | l.place(ownerOf(i, 1))<<16)
		} else {
			h.add(0)
		}
	}
	return h.sum
}

func pack(a, b, c, d, e, f, g, h uint8) uint64 {
	return uint64(a) | uint64(b)<<8 | uint64(c)<<16 | uint64(d)<<24 |
		uint64(e)<<32 | uint64(f)<<40 | uint64(g)<<48 | uint64(h)<<56
}

// mix is a hash of words.
type mix struct{ sum uint64 }

func (h *mix) add(word uint64) {
	h.sum = bits.RotateLeft64((h.sum^word)*0x9e3779b97f4a7c15, 29)
}

func bit8(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
