package model

// Progress at a quorum: when nothing fails any more, who waits in line is served. All servers answer
// each question before the next tick, who has less than a majority gives back what it has, unless it
// has its turn in the line, and holders give back at once. Who lost its turn keeps its place, which the
// real client gives up too; its votes end with their leases.

func (p *polled) waits(s *Poll) bool {
	v := &s.Voters[0]
	return v.Phase == Standing || v.Phase == Asking || v.Phase == Verifying
}

// prompt is what happens before time passes, when nothing fails any more.
func (p *polled) prompt(s *Poll, d Deed) bool {
	v := &s.Voters[d.Client]
	leads := v.Yes&1 != 0
	switch d.Step {
	case Vote, Lift, Yield:
		return true
	case Second:
		return v.Turned == 0
	case Resigns:
		return v.Phase == Held || v.Lined == 0 && v.Phase == Asking && v.Heard == 1<<members-1 && !leads
	}
	return false
}

func (p *polled) urgent(s *Poll, d Deed) bool { return p.prompt(s, d) }

func (p *polled) orderly(s *Poll, d Deed, urgent bool) bool {
	return p.prompt(s, d) || d.Step == Opens || d.Step == Passes && !urgent
}
