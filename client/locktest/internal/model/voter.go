package model

// The rules of a quorum's clients: what client/quorum does, each in few steps. Deadlines are those of the
// lease machine (lease.go).

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
		return true, p.ask(s, i, n)
	case VoteLost:
		p.vote(s, n, owner, v.Fence)
	case VoteLate:
		s.Strayed++
		p.vote(s, n, owner, v.token(d.Past))
	case Lift:
		p.lift(s, i, n)
	case LiftLost:
		p.call(s, n, Request{Kind: Raise, Owner: owner, Raised: v.Fence})
	case Yield:
		p.call(s, n, Request{Kind: Leave, Owner: owner})
	case Renews:
		if v.Asked == 0 { // else it is asked for anew
			v.Lease, _ = renews(v.Lease)
		}
		v.Asked, v.Yes = p.Lease, 0
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
	v.Yes = 0
	return true
}

// resign ends the acquisition. What is under way of it stays so.
func (p *polled) resign(v *Voter) {
	v.Phase, v.Left, v.Lease, v.Asked, v.Heard, v.Turned = Idle, 0, 0, 0, 0, 0
	if p.Progress {
		v.Phase = Resting
	}
	v.Yes = 0
}

// ask asks a server for its vote. Who has the first one asks all for theirs, with that token, and again
// when one has a higher token. Who has a majority has the lock. (The real client adds something to the
// token: that makes tokens grow more, and is for speed.)
func (p *polled) ask(s *Poll, i, n int) (bad uint8) {
	v := &s.Voters[i]
	e := p.vote(s, n, ownerOf(i, 0), v.Fence)
	if p.heard(v, n); !e.Reply.Yes {
		v.Turned = bit8(p.Progress && (v.Turned == 1 || e.Reply.Holder != 0))
		return 0
	}
	token := e.Reply.Fence
	switch {
	case v.Fence == 0 && p.Flaw == NoLead:
		v.Fence = token
	case v.Fence == 0:
		p.raises(v, token)
		return 0
	case token > v.Fence && p.Flaw == Unraised:
		v.Fence = token
	case token > v.Fence && p.Flaw != LowToken:
		p.raises(v, token)
	}
	if v.counts(n); count(v.Yes) >= p.need() {
		return p.hold(s, v)
	}
	return 0
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

// raises begins a round with a higher token.
func (p *polled) raises(v *Voter, token Token) {
	v.Fence, v.Yes, v.Heard, v.Turned = token, 0, 0, 0
}

// hold begins to work under the lock, whose lease counts from before the first question.
func (p *polled) hold(s *Poll, v *Voter) (bad uint8) {
	if p.Flaw == LateCount {
		v.Left = p.Lease
	}
	asks, length := v.Left, p.Lease
	if p.Flaw == LongBelief {
		asks, length = asks+1, length+1
	}
	if v.Left, v.Lease = 0, granted(length, asks); v.Lease == 0 { // too late
		p.resign(v)
		return 0
	}
	v.Phase, v.Yes, v.Heard, v.Turned = Held, 0, 0, 0
	if v.Fence <= s.Top {
		bad |= 1 << Tokens
	}
	s.Top = max(s.Top, v.Fence)
	return bad
}

// lift asks a server to renew. One that has forgotten its vote, and gives the lock to nobody else, is
// asked for it again. What a majority says counts.
func (p *polled) lift(s *Poll, i, n int) {
	v := &s.Voters[i]
	e := p.call(s, n, Request{Kind: Raise, Owner: ownerOf(i, 0), Raised: v.Fence})
	if !e.Reply.Yes && e.Reply.Holder == 0 {
		e = p.vote(s, n, ownerOf(i, 0), v.Fence)
	}
	if !e.Reply.Yes {
		return
	}
	v.counts(n)
	if count(v.Yes) >= p.need() || p.Flaw == OneRenews {
		v.Lease, v.Asked, v.Yes = renewed(v.Lease, v.Asked), 0, 0
	}
}

// wane lets a tick pass for a client.
func (p *polled) wane(v *Voter) {
	if v.Asked > 0 {
		if v.Asked--; v.Asked == 0 {
			v.Yes, v.Lease = 0, failed(v.Lease)
		}
	}
	switch v.Phase {
	case Resting:
		v.Phase = Idle
	case Held:
		if v.Lease = later(v.Lease); v.Lease == 0 { // its own deadline
			p.resign(v)
		}
	case Asking:
		if v.Left--; v.Left <= 0 {
			p.resign(v)
		}
	}
}
