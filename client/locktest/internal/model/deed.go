package model

import "fmt"

// Deed is what can happen next at a quorum: a step of a client, at a server. Those of no client have
// client 0, and those at no server server 0.
type Deed struct {
	Step   Step
	Client uint8
	Server uint8
	Past   uint8 // of a call: it is for the owner before
}

// Step is the kind of a Deed.
type Step uint8

// The steps.
const (
	Vote     Step = iota // a server answers who asks for its vote
	Lift                 // a server answers a renewal
	Yield                // a server runs what gives back an owner's vote
	Passes               // time passes
	Opens                // a client begins an acquisition
	Renews               // a client begins a renewal
	Resigns              // a client gives up, or gives back
	VoteLost             // a server votes, and the answer is lost
	LiftLost             // a server renews, and the answer is lost
	VoteLate             // a server votes for an owner that has given up
	Dies                 // a client dies
	Returns              // a server comes back empty
	Loses                // a server loses the key
	steps
)

var stepNames = [steps]string{
	Vote: "is asked for its vote by", Lift: "is asked to renew by",
	Yield: "is given its vote back by", Passes: "a tick passes", Opens: "begins:",
	Renews: "renews:", Resigns: "gives up, or back:",
	VoteLost: "votes, and the answer is lost, for", LiftLost: "renews, and the answer is lost, for",
	VoteLate: "runs a late acquire of",
	Dies:     "dies:", Returns: "comes back empty", Loses: "loses the key",
}

// alone reports whether a step is of no client.
func (s Step) alone() bool { return s == Passes || s == Returns || s == Loses }

// at reports whether a step is at a server.
func (s Step) at() bool {
	switch s {
	case Passes, Opens, Renews, Resigns, Dies:
		return false
	}
	return true
}

// old reports whether a step can be for the owner before.
func (s Step) old() bool { return s == Yield || s == VoteLate }

func (d Deed) describe(client, server string) string {
	text := stepNames[d.Step]
	if d.Step.at() {
		text = "server " + server + " " + text
	}
	if !d.Step.alone() {
		text = fmt.Sprintf("%s %s", text, client)
	}
	if d.Past == 1 {
		text += "'"
	}
	return text
}

// successors returns the states that follow one, in their normal form.
func (p *polled) successors(s *Poll, out []successor[Poll, Deed]) []successor[Poll, Deed] {
	for step := range steps {
		clients, servers, owners := p.Clients, 1, 1
		if step.alone() {
			clients = 1
		}
		if step.at() {
			servers = members
		}
		if step.old() {
			owners = 2
		}
		for n := range clients * servers * owners {
			d := Deed{step, uint8(n / owners / servers), uint8(n / owners % servers), uint8(n % owners)}
			if !p.may(s, d) {
				continue
			}
			out = append(out, successor[Poll, Deed]{state: *s, action: d})
			x := &out[len(out)-1]
			ok, bad := p.apply(&x.state, d)
			if !ok || bad == 0 && x.state == *s { // nothing happens
				out = out[:len(out)-1]
				continue
			}
			x.bad = bad
			p.normalize(&x.state)
		}
	}
	return out
}

// may reports whether a deed is possible, as far as that shows without doing it.
func (p *polled) may(s *Poll, d Deed) bool {
	v, l := &s.Voters[d.Client], &s.Members[d.Server].Lock
	if p.Calm && !p.orderly(s, d, false) {
		return false
	}
	owner := ownerOf(int(d.Client), d.Past)
	has := l.heldBy(owner)
	yes := v.Yes>>d.Server&1 != 0 && p.Flaw != CountedTwice
	switch d.Step {
	case Opens:
		return v.Phase == Idle
	case Vote:
		return v.Phase == Asking && !yes
	case VoteLost:
		return !has && !v.over()
	case Lift:
		return v.Phase == Held && v.Asked > 0 && !yes
	case LiftLost:
		return has && !v.over()
	case Renews:
		return v.Phase == Held && v.Asked < p.Lease && !p.Progress
	case Resigns:
		return !v.over()
	case Yield:
		return l.knows(owner) && p.gone(v, d.Past) && (d.Past == 1 || v.Phase != Dead)
	case VoteLate:
		return s.Strayed < p.Strays && p.gone(v, d.Past) && (!has || v.token(d.Past) > 0)
	case Dies:
		return !v.over() && s.Crashed < p.Crashes
	case Returns:
		return s.Returned < p.Restarts
	case Loses:
		return l.Owner != 0 && s.Lost < p.Losses
	}
	return true
}

// gone reports whether an owner of a client has given up, so that what was sent for it may come now.
func (p *polled) gone(v *Voter, past uint8) bool {
	if past == 0 {
		return v.Used == 1 && (v.over() || p.Flaw == OwnerAgain && v.Past == 1)
	}
	return v.Past == 1 && p.Flaw != OwnerAgain
}

// token is of an owner.
func (v *Voter) token(past uint8) Token {
	if past == 1 {
		return v.Former
	}
	return v.Fence
}
