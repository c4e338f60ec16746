package model

// Member is one of several servers. Nothing but the lock, the last token and the age of the memory
// matters of it.
type Member struct {
	Lock  Lock
	Last  Token
	Age   int8 // of its memory, at most Quorum.Guard
	Ahead bool // its clock is ahead of all tokens
}

// Phase is where a client of a quorum is.
type Phase uint8

// The phases.
const (
	Idle    Phase = iota
	Resting       // done with an acquisition; the next one begins after a tick
	Asking        // for votes
	Held
	Dead
)

// Voter is a client of a quorum.
//
// Calls under way need no place in the state. In a round, each server may run the call, or not, at
// any time until the round is over, and also later: that is what lost and late messages come to. A
// call of an owner that has given up is one of Quorum.Strays, but for what gives back, which may be
// run at any time and as often as one likes.
type Voter struct {
	Phase  Phase
	Left   int8  // of the lease that is asked for
	Lease  uint8 // what its lease machine is like
	Asked  int8  // of the lease that the renewal under way asks for; 0: there is none
	Yes    uint8 // the servers that said yes in this round, as bits
	Heard  uint8 // those that answered, as bits; without Progress nobody counts them
	Turned uint8 // one of them said that another has the lock; without Progress nobody notes it
	Fence  Token // what the votes are raised to, 0 in the first round; then the lock's
	Used   uint8 // the present owner may be known to servers
	Past   uint8 // and the one before
	Former Token // its token
}

// Poll is everything. It is comparable, and holds nothing that does not matter.
type Poll struct {
	Members  [members]Member
	Voters   [maxClients]Voter
	Top      Token // of all that held the lock
	Crashed  uint8
	Returned uint8 // restarts so far
	Lost     uint8
	Strayed  uint8
}

// Believes reports whether the client holds the lock by its own view.
func (v *Voter) Believes() bool { return v.Lease != 0 }

// over reports whether the client wants nothing by its present owner.
func (v *Voter) over() bool { return v.Phase == Idle || v.Phase == Resting || v.Phase == Dead }

func count(bits uint8) (n int) {
	for ; bits != 0; bits &= bits - 1 {
		n++
	}
	return n
}

// named reports whether a server knows an owner.
func (p *Poll) named(o Owner) bool {
	for i := range p.Members {
		if p.Members[i].Lock.knows(o) {
			return true
		}
	}
	return false
}

func (p *Poll) rename(to *[2*maxClients + 1]Owner) {
	for i := range p.Members {
		p.Members[i].Lock.rename(to)
	}
}

// tokens calls f for each token.
func (p *Poll) tokens(f func(*Token)) {
	for i := range p.Members {
		f(&p.Members[i].Lock.Fence)
		f(&p.Members[i].Last)
	}
	for i := range p.Voters {
		v := &p.Voters[i]
		f(&v.Fence)
		f(&v.Former)
	}
	f(&p.Top)
}

// most is the highest token.
func (p *Poll) most() (most Token) {
	p.tokens(func(t *Token) { most = max(most, *t) })
	return most
}

func (p *polled) first() Poll {
	var s Poll
	for i := range s.Members {
		s.Members[i].Age = p.Guard
		s.Members[i].Ahead = i >= members-int(p.Ahead)
	}
	p.normalize(&s)
	return s
}

func (p *polled) broken(s *Poll) (out uint8) {
	holders := 0
	for i := range s.Voters[:p.Clients] {
		if s.Voters[i].Believes() {
			holders++
		}
	}
	if holders > 1 {
		out |= 1 << Exclusion
	}
	for i := range s.Members {
		if s.Members[i].Lock.unbounded() {
			out |= 1 << Expiry
		}
	}
	return out
}
