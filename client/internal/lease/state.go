package lease

// State is where a lease is in its life.
type State uint8

// The states. Work may go on in the first two.
const (
	Confirming State = iota // granted for a short time, until a renewal is answered
	Held                    // granted for a whole lease
	// a limit ended the work; the lock is still ours until the grace is over
	Stopping
	// The server says that it is another's, or nobody's. Another server may have it, from a failover or
	// as one of several, and keeps others out while the work that it was for comes to its end.
	Refused
	GivingBack // not wanted any more; the server may not know yet
	// Being given back, although a server has said that it is not ours. That one need not be the one
	// that granted it: in a failover a client's calls reach now the new primary, now the deposed one.
	Denied
	Released // given back, or over after it was given up
	Left     // the client closes: it ends with its lease
)

func (s State) String() string {
	return [...]string{"confirming", "held", "stopping", "refused", "giving back", "denied", "released", "left"}[s]
}

// event is what can happen to a lease.
type event uint8

const (
	confirmed event = iota // the server says that the lock is ours
	refused                // the server says that it is not, or has told of a break
	limited                // MaxHold or MaxRenewals
	expired                // the local deadline has passed
	givenUp                // the last holder has released it, or the grace is over
	givenBack              // the server has taken it back
	denied                 // the server says that there was nothing to give back
	lapsed                 // it was given up, and the server's lease is over too
	abandoned              // the client closes
	events
)

// transitions is the whole machine: the state that follows each state at each event.
var transitions = [...][events]State{
	//           confirmed   refused     limited     expired     givenUp     givenBack   denied      lapsed      abandoned
	Confirming: {Held, Refused, Stopping, GivingBack, GivingBack, Confirming, Confirming, Confirming, Left},
	Held:       {Held, Refused, Stopping, GivingBack, GivingBack, Held, Held, Held, Left},
	Stopping:   {Stopping, Refused, Stopping, GivingBack, GivingBack, Stopping, Stopping, Stopping, Left},
	Refused:    {Refused, Refused, Refused, Denied, Refused, Refused, Refused, Refused, Left},
	GivingBack: {GivingBack, GivingBack, GivingBack, GivingBack, GivingBack, Released, Denied, Released, GivingBack},
	Denied:     {Denied, Denied, Denied, Denied, Denied, Released, Denied, Released, Left},
	Released:   {Released, Released, Released, Released, Released, Released, Released, Released, Released},
	Left:       {Left, Left, Left, Left, Left, Left, Left, Left, Left},
}

// move is the only place that changes a state.
func (l *Lease) move(e event) { l.state = transitions[l.state][e] }
