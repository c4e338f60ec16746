package model

// What happens at the servers of a quorum.

// call runs a call at a server.
func (p *polled) call(s *Poll, n int, r Request) Effect {
	m := &s.Members[n]
	env := Env{Young: m.Age < p.Guard && p.Flaw != Unguarded, Now: 1, Last: m.Last}
	if m.Ahead {
		env.Now = s.most() + 1
	}
	e := p.rules.Do(m.Lock, env, r)
	if p.saw != nil {
		p.saw(m.Lock, env, r, e)
	}
	m.Lock, m.Last = e.Lock, e.Last
	return e
}

// vote runs what asks a server for its vote, and for a token that is not below raised.
func (p *polled) vote(s *Poll, n int, owner Owner, raised Token) Effect {
	e := p.call(s, n, Request{Kind: Acquire, Owner: owner})
	if e.Reply.Yes && raised != 0 {
		e = p.call(s, n, Request{Kind: Raise, Owner: owner, Raised: raised})
	}
	return e
}

// befall is what nobody does.
func (p *polled) befall(s *Poll, d Deed) {
	m := &s.Members[d.Server]
	switch d.Step {
	case Returns: // its clock is above the tokens that it forgot by the time that it votes
		s.Returned++
		if m.Last = s.most(); p.Behind {
			m.Last = 0
		}
		m.Lock, m.Age = Lock{}, 0
	case Loses:
		s.Lost++
		m.Lock = Lock{}
	case Passes:
		for i := range s.Members {
			m := &s.Members[i]
			token := m.Lock.Fence
			if p.rules.age(&m.Lock); m.Lock.Owner == 0 { // the clock is above it by then
				m.Last = max(m.Last, token)
			}
			m.Age = min(m.Age+1, p.Guard)
		}
		for i := range s.Voters[:p.Clients] {
			p.wane(&s.Voters[i])
		}
	}
}
