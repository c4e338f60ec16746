package model

import (
	"math/bits"
	"slices"
)

// The normal form of a quorum: tokens are numbered by their order, with a gap between each two, for
// one that a server's clock makes. Servers are put in order, if it does not matter who is asked first,
// and so are clients.

// renamed is where the clients and the servers went.
type renamed struct {
	voters  [maxClients]uint8
	members [members]uint8
}

func (p *polled) normalize(s *Poll) (to renamed) {
	for i := range s.Members {
		m := &s.Members[i]
		m.Lock.anonymize()
		if m.Lock.remembers() && p.Losses == 0 { // whether a key or the server knows the token is the same then
			m.Last, m.Lock = max(m.Last, m.Lock.Fence), Lock{}
		}
	}
	if p.Progress { // tokens are looked at without it
		s.Top = 0
	}
	for i := range s.Members {
		if p.Calm {
			s.Members[i].Last = 0
		}
	}
	p.forget(s)
	s.renumber()
	to.voters = p.sortVoters(s)
	to.members = p.sortMembers(s)
	return to
}

// forget drops what has no effect any more.
func (p *polled) forget(s *Poll) {
	spent := s.Strayed >= p.Strays
	for i := range s.Voters[:p.Clients] {
		v := &s.Voters[i]
		if (spent || !p.Raises) && v.over() {
			v.Fence = 0
		}
		if spent || !p.Raises {
			v.Former = 0
		}
		if spent && v.over() {
			if p.Flaw != OwnerAgain && !s.named(ownerOf(i, 0)) {
				v.Used = 0
			}
		}
		if spent {
			if p.Flaw != OwnerAgain && !s.named(ownerOf(i, 1)) {
				v.Past = 0
			}
		}
	}
}

func (p *Poll) renumber() {
	used := uint64(0)
	p.tokens(func(t *Token) { used |= 1 << *t })
	used &^= 1 // 0 is none
	p.tokens(func(t *Token) {
		if *t != 0 {
			*t = Token(2 * bits.OnesCount64(used&(1<<*t-1)))
			*t += 2
		}
	})
}

// sortVoters puts the clients in order. With Progress the first one stays: it is the one that is
// watched.
func (p *polled) sortVoters(s *Poll) (moved [maxClients]uint8) {
	order := []uint8{0, 1, 2}[:p.Clients]
	var rank [maxClients]uint64
	for i := range order {
		rank[i] = p.view(s, i)
	}
	first := 0
	if p.Progress {
		first = 1
	}
	slices.SortStableFunc(order[first:], func(a, b uint8) int {
		if rank[a] < rank[b] {
			return -1
		}
		return 1
	})
	voters, names := s.Voters, identity
	for to, from := range order {
		moved[from] = uint8(to)
		s.Voters[to] = voters[from]
		names[ownerOf(int(from), 0)], names[ownerOf(int(from), 1)] = ownerOf(to, 0), ownerOf(to, 1)
	}
	s.rename(&names)
	return moved
}

// view is a number for all that concerns one client, whatever the order of the servers. Clients with
// the same one may change places.
func (p *polled) view(s *Poll, i int) uint64 {
	v := &s.Voters[i]
	var h mix
	h.add(pack(uint8(v.Phase), uint8(v.Left+left(v.Lease)), uint8(v.Asked), v.Fence, v.Used, v.Past, v.Former, v.Turned))
	sum := h.sum
	for n := range s.Members {
		m := &s.Members[n]
		var h mix
		h.add(m.Lock.place(ownerOf(i, 0)) | m.Lock.place(ownerOf(i, 1))<<8 | uint64(v.Heard>>n&1)<<17 |
			uint64(m.Age)<<24 | uint64(m.Last)<<32 | uint64(m.Lock.Rem)<<40 | uint64(v.Yes>>n&1)<<16)
		if p.Progress {
			h.add(uint64(n))
		}
		sum += h.sum
	}
	return sum
}

func (p *polled) sortMembers(s *Poll) (moved [members]uint8) {
	order := [members]uint8{0, 1, 2}
	if p.Progress {
		return order
	}
	var rank [members]uint64
	for n := range order {
		m := &s.Members[n]
		l := &m.Lock
		var h mix
		h.add(pack(uint8(l.Owner), uint8(l.Rem), uint8(l.Exp), l.Fence, m.Last, uint8(m.Age), bit8(m.Ahead), 0))
		said := uint64(0)
		for i := range s.Voters {
			said = said<<1 | uint64(s.Voters[i].Yes>>n&1)
		}
		h.add(said)
		rank[n] = h.sum
	}
	slices.SortStableFunc(order[:], func(a, b uint8) int {
		if rank[a] < rank[b] {
			return -1
		} else if rank[a] > rank[b] {
			return 1
		}
		return 0
	})
	was := *s
	for i := range s.Voters {
		s.Voters[i].Yes = 0
	}
	for to, from := range order {
		moved[from] = uint8(to)
		s.Members[to] = was.Members[from]
		for i := range s.Voters {
			s.Voters[i].Yes |= was.Voters[i].Yes >> from & 1 << to
		}
	}
	return moved
}

func bit8(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
