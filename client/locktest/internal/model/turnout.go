package model

// Progress at a quorum: when nothing fails any more, and client 0 asks again in each tick, somebody gets
// the lock. All servers answer each question before the next tick, who does not get the lock gives back
// what it has, and holders give back at once. Who it is that gets it is chance: nobody stands in line.

func (p *polled) waits(s *Poll) bool {
	for i := range s.Voters[:p.Clients] {
		if s.Voters[i].Phase == Held {
			return false
		}
	}
	return s.Voters[0].Phase != Dead
}

// prompt is what happens before time passes, when nothing fails any more.
func (p *polled) prompt(s *Poll, d Deed) bool {
	v := &s.Voters[d.Client]
	leading := v.Fence == 0 && p.Flaw != NoLead
	heard := v.Heard == 1<<members-1
	switch d.Step {
	case Opens:
		return d.Client == 0
	case Yield:
		return true
	case Vote: // one server after another, until one votes, or says who has the lock
		if leading {
			return v.Turned == 0 && v.Heard == 1<<d.Server-1
		}
		return v.Heard>>d.Server&1 == 0
	case Resigns:
		return v.Phase == Held || v.Phase == Asking &&
			(leading && v.Turned == 1 || heard)
	}
	return false
}

func (p *polled) urgent(s *Poll, d Deed) bool { return p.prompt(s, d) }

func (p *polled) orderly(s *Poll, d Deed, urgent bool) bool {
	return p.prompt(s, d) || d.Step == Opens || d.Step == Passes && !urgent
}
