package model

// The rules of a quorum's clients: what client/internal/quorum and the lease machine do, each in few
// steps.

// need is how many votes are a majority.
func (p *polled) need() int {
	if p.Flaw == OneIsEnough {
		return 1
	}
	return majority
}

// apply does a deed. It returns false if that is not possible, and else the invariants that it broke.
func (p *polled) apply(s *Poll, d Deed) (possible bool, bad uint8) {
	i, n := int(d.Client), int(d.Server)
	v := &s.Voters[i]
	owner := ownerOf(i, d.Past)
	switch d.Step {
	case Opens:
		return p.open(s, i), 0
	case Vote:
		p.ask(s, i, n)
	case VoteLost:
		p.call(s, n, Request{Kind: asks(v), Owner: owner})
	case VoteLate:
		s.Strayed++
		p.call(s, n, Request{Kind: Acquire, Owner: owner})
	case Second:
		return true, p.second(s, v)
	case Lift:
		return true, p.lift(s, i, n)
	case LiftLost:
		p.call(s, n, Request{Kind: Raise, Owner: owner, Raised: v.Fence})
	case LiftLate:
		s.Strayed++
		p.call(s, n, Request{Kind: Raise, Owner: owner, Raised: v.token(d.Past)})
	case Yield:
		p.call(s, n, Request{Kind: Leave, Owner: owner})
	case Repeats:
		p.repeat(v)
	case Renews:
		v.Asked, v.Yes, v.Heard = p.Lease, 0, 0
	case Resigns:
		p.resign(v)
	case Dies:
		s.Crashed++
		p.resign(v)
		v.Phase = Dead
	default:
		p.befall(s, d)
	}
	return true, 0
}

// asks is the call by which a client asks for a vote.
func asks(v *Voter) Kind {
	if v.Phase == Standing {
		return Wait
	}
	return Acquire
}

// open begins an acquisition, with an owner string of its own. It returns false if the model has no
// other name for one.
func (p *polled) open(s *Poll, i int) bool {
	v := &s.Voters[i]
	present, past := ownerOf(i, 0), ownerOf(i, 1)
	switch {
	case p.Flaw == OwnerAgain:
		v.Past = v.Used
	case v.Used == 1:
		if s.named(past) {
			return false
		}
		names := identity
		names[present] = past
		s.rename(&names)
		v.Past, v.Former = 1, v.Fence
	}
	v.Used, v.Phase, v.Left, v.Fence, v.Heard, v.Turned = 1, Asking, p.Lease, 0, 0, 0
	if v.Lined == 1 {
		v.Phase = Standing
	}
	if p.Flaw != OldVotes {
		v.Yes = 0
	}
	return true
}

// repeat begins the first round again, by asking in line whose turn it is.
func (p *polled) repeat(v *Voter) {
	v.Yes, v.Heard, v.Turned, v.Fence, v.Left = 0, 0, 0, 0, p.Lease
	if v.Lined == 1 {
		v.Phase = Standing
	}
}

// resign ends the acquisition. What is under way of it stays so.
func (p *polled) resign(v *Voter) {
	v.Phase, v.Left, v.Asked, v.Heard, v.Turned = Idle, 0, 0, 0, 0
	if p.Progress {
		v.Phase = Resting
	}
	if p.Flaw != OldVotes {
		v.Yes = 0
	}
}

// ask asks a server for its vote. The lease counts from the first question of a round, and in the
// line from the last one.
func (p *polled) ask(s *Poll, i, n int) {
	v := &s.Voters[i]
	e := p.call(s, n, Request{Kind: asks(v), Owner: ownerOf(i, 0)})
	if p.heard(v, n); !e.Reply.Yes {
		v.Turned = bit8(p.Progress && (v.Turned == 1 || n == 0 && e.Reply.Holder != 0))
		return
	}
	if v.Phase == Standing {
		v.Phase, v.Yes, v.Left = Asking, 0, p.Lease
	}
	if v.Yes == 0 {
		v.Left = p.Lease
	}
	if p.Flaw != FirstToken || v.Fence == 0 {
		v.Fence = max(v.Fence, e.Reply.Fence)
	}
	v.counts(n)
}

// heard notes an answer.
func (p *polled) heard(v *Voter, n int) {
	if p.Progress {
		v.Heard |= 1 << n
	}
}

// counts counts a yes. One that comes again, which only a mistake admits, is another's.
func (v *Voter) counts(n int) {
	if bit := uint8(1) << n; v.Yes&bit == 0 {
		v.Yes |= bit
	} else {
		v.Yes |= (v.Yes + 1) & (1<<members - 1)
	}
}

// second begins the second round: the highest token of the votes is raised at all servers.
func (p *polled) second(s *Poll, v *Voter) (bad uint8) {
	v.Yes, v.Heard = 0, 0
	if v.Phase = Verifying; p.Flaw == OneRound {
		return p.hold(s, v)
	}
	return 0
}

// hold begins to work under the lock, if the lease is not over yet.
func (p *polled) hold(s *Poll, v *Voter) (bad uint8) {
	switch p.Flaw {
	case LateCount:
		v.Left = p.Lease
	case LongBelief:
		v.Left++
	}
	v.Phase, v.Yes, v.Heard, v.Turned = Held, 0, 0, 0
	if v.Fence <= s.Top {
		bad |= 1 << Tokens
	}
	s.Top = max(s.Top, v.Fence)
	return bad
}

// lift asks a server to raise the token. A holder asks one that has forgotten it, and gives the lock
// to nobody else, for its vote first. What a majority says counts.
func (p *polled) lift(s *Poll, i, n int) (bad uint8) {
	v := &s.Voters[i]
	raise := Request{Kind: Raise, Owner: ownerOf(i, 0), Raised: v.Fence}
	e := p.call(s, n, raise)
	if !e.Reply.Yes && e.Reply.Holder == 0 && v.Phase == Held {
		p.call(s, n, Request{Kind: Acquire, Owner: ownerOf(i, 0)})
		e = p.call(s, n, raise)
	}
	if p.heard(v, n); !e.Reply.Yes {
		return 0
	}
	v.counts(n)
	switch got := count(v.Yes); {
	case v.Phase == Held && (got >= p.need() || p.Flaw == OneRenews):
		v.Left, v.Asked, v.Yes, v.Heard = max(v.Left, v.Asked), 0, 0, 0
	case v.Phase == Verifying && (got >= p.need() || p.Flaw == RaiseAtOne):
		return p.hold(s, v)
	}
	return 0
}

// wane lets a tick pass for a client.
func (p *polled) wane(v *Voter) {
	if v.Asked > 0 {
		v.Asked--
		if v.Asked == 0 {
			v.Yes, v.Heard = 0, 0
		}
	}
	switch {
	case v.Phase == Resting:
		v.Phase = Idle
	case v.over():
	case v.Phase == Standing:
		v.Heard = 0
	case v.Lined == 1 && v.fails() && v.Phase != Held:
		p.repeat(v)
	case v.fails() && v.Phase != Held:
		p.resign(v)
	case v.Phase == Asking && v.Yes == 0:
	default:
		if v.Left--; v.Left <= 0 { // its own deadline
			p.resign(v)
		}
	}
}
