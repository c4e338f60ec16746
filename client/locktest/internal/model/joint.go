package model

// Joint is a joinable lock at a primary with a replica: A and B share an owner string, each has a hold
// of its own, and C is another owner. Clients do not wait, and messages are run and heard at once, or
// their answer is lost. Times are ticks.
type Joint struct {
	Bounds
	Lease   int8
	Guard   int8 // a server whose memory is younger grants nothing; 0: each grants
	Crashes uint8
	Unnamed bool // a renewal names its token only, and not its hold
}

// Sharer is a client of a joinable lock. Its phases are Idle, Asking, Held and Dead.
type Sharer struct {
	Phase Phase
	Left  int8
	Asked int8  // of the lease that a renewal under way asks for; 0: there is none
	Owes  uint8 // what gives its last hold back may be run yet
	Fence Token
}

// Shared is everything. It is comparable.
type Shared struct {
	Lock, Replica Lock
	Age           int8
	Failed        uint8
	Crashed       uint8
	Sharers       [maxClients]Sharer
}

// Act is what can happen next to a joinable lock.
type Act struct {
	What   What
	Client uint8
}

// What is the kind of an Act.
type What uint8

// The acts.
const (
	Joins      What = iota // a client begins
	Taken                  // the server answers its acquire
	TakenLost              // and the answer is lost
	Prolongs               // a client renews
	Prolonged              // the server answers that
	Leaves                 // a client gives up, or back
	GivenBack              // the server hears of it
	Caught                 // the replica catches up
	Promoted               // it is promoted
	Struck                 // a client dies
	TickPassed             // time passes
	whats
)

var whatNames = [whats]string{"begins:", "the server runs the acquire of", "the answer is lost of the acquire of",
	"renews:", "the server runs the renewal of", "gives up, or back:", "the server runs the release of",
	"the replica catches up", "the replica is promoted", "dies:", "a tick passes"}

func (w What) alone() bool { return w == Caught || w == Promoted || w == TickPassed }

// joined is a Joint as it is explored.
type joined struct {
	*Joint
	rules *Config
	saw   Witness
}

// ExploreJoint visits all states that the lock can reach, breadth first. It stops at the first violation
// that is not admitted.
func ExploreJoint(j Joint, saw Witness) (*Report[Act], error) {
	rules := &Config{Clients: maxClients, Lease: j.Lease, Provisional: 1, Line: 2, Silence: 2}
	return explore[Shared, Act](&joined{&j, rules, saw})
}

func (j *joined) first() Shared { return Shared{Age: j.Guard} }

// sharedOwner is a client's owner string: A and B have one.
func sharedOwner(i int) Owner {
	if i < 2 {
		return ownerOf(0, 0)
	}
	return ownerOf(i, 0)
}

// holdOf is a client's hold; C takes a plain lock.
func holdOf(i int) uint8 { return [maxClients]uint8{1, 2, 0}[i] }

func (j *joined) call(s *Shared, r Request) Reply {
	env := Env{Young: s.Age < j.Guard, Now: s.most()}
	e := j.rules.Do(s.Lock, env, r)
	if j.saw != nil {
		j.saw(s.Lock, env, r, e)
	}
	s.Lock = e.Lock
	return e.Reply
}

// tokens calls f for each token.
func (s *Shared) tokens(f func(*Token)) {
	f(&s.Lock.Fence)
	f(&s.Replica.Fence)
	for i := range s.Sharers {
		f(&s.Sharers[i].Fence)
	}
}

func (s *Shared) most() (most Token) {
	s.tokens(func(t *Token) { most = max(most, *t) })
	return most
}

// renumber numbers the tokens by their order.
func (s *Shared) renumber() {
	used := [64]bool{}
	s.tokens(func(t *Token) { used[*t] = true })
	to, n := [64]Token{}, Token(0)
	for t := 1; t < len(used); t++ {
		if used[t] {
			n++
			to[t] = n
		}
	}
	s.tokens(func(t *Token) { *t = to[*t] })
}

func (l *Lock) holds(o Owner, hold uint8) bool { return l.heldBy(o) && l.Holds&hold == hold }

// broken looks for two owners; A and B may hold the lock together.
func (j *joined) broken(s *Shared) (out uint8) {
	believes := func(i int) bool { return s.Sharers[i].Phase == Held && s.Sharers[i].Left > 0 }
	if (believes(0) || believes(1)) && believes(2) {
		out |= 1 << Exclusion
	}
	if l := &s.Lock; l.Owner != 0 && (l.Exp <= 0 || l.Exp < l.Rem) {
		out |= 1 << Expiry
	}
	return out
}

// apply does an act. It returns false if that is not possible.
func (j *joined) apply(s *Shared, a Act) bool {
	i := int(a.Client)
	c, owner, hold := &s.Sharers[i], sharedOwner(i), holdOf(i)
	switch a.What {
	case Joins:
		if c.Phase != Idle || s.Lock.holds(owner, hold) || s.Replica.holds(owner, hold) {
			return false // a hold has an id of its own, and the model no other name for it
		}
		*c = Sharer{Phase: Asking, Left: j.Lease}
	case Taken, TakenLost:
		if c.Phase != Asking {
			return false
		}
		r := j.call(s, Request{Kind: Acquire, Owner: owner, Hold: hold})
		if r.Yes && a.What == Taken {
			c.Phase, c.Fence = Held, r.Fence
		}
	case Prolongs:
		if c.Phase != Held || c.Asked == j.Lease {
			return false
		}
		c.Asked = j.Lease
	case Prolonged:
		if c.Phase != Held || c.Asked == 0 {
			return false
		}
		named := hold
		if j.Unnamed {
			named = 0
		}
		if r := j.call(s, Request{Kind: Renew, Owner: owner, Fence: c.Fence, Hold: named}); r.Yes {
			c.Left, c.Asked = max(c.Left, c.Asked), 0
		} else {
			*c = Sharer{Owes: 1}
		}
	case Leaves:
		if c.Phase != Asking && c.Phase != Held {
			return false
		}
		*c = Sharer{Owes: 1}
	case GivenBack:
		if c.Owes == 0 {
			return false
		}
		j.call(s, Request{Kind: Release, Owner: owner, Hold: hold})
	case Struck:
		if c.Phase == Dead || s.Crashed >= j.Crashes {
			return false
		}
		*c = Sharer{Phase: Dead}
		s.Crashed++
	default:
		return j.happens(s, a.What)
	}
	return true
}

// happens is what nobody does.
func (j *joined) happens(s *Shared, what What) bool {
	switch what {
	case Caught:
		if s.Failed > 0 {
			return false
		}
		s.Replica = s.Lock
	case Promoted:
		if s.Failed > 0 {
			return false
		}
		s.Failed, s.Age = 1, 0
		s.Lock, s.Replica = s.Replica, Lock{}
	case TickPassed:
		j.rules.age(&s.Lock)
		j.rules.age(&s.Replica)
		s.Age = min(s.Age+1, j.Guard)
		for i := range s.Sharers {
			c := &s.Sharers[i]
			c.Asked = max(0, c.Asked-1)
			if c.Phase != Asking && c.Phase != Held {
				continue
			}
			if c.Left--; c.Left <= 0 {
				*c = Sharer{Owes: 1}
			}
		}
	}
	return true
}
