package lease

// State is where a lease is in its life.
type State uint8

// The states. Work may go on in the first two.
const (
	Confirming State = iota // granted for a short time, until a renewal is answered
	Held                    // granted for a whole lease
	// a limit ended the work; the lock is still ours until the grace is over
	Stopping
	GivingBack // not wanted any more; the server may not know yet
	Released   // given back, or over after it was given up
	Lost       // another's, or nobody's
)

func (s State) String() string {
	return [...]string{"confirming", "held", "stopping", "giving back", "released", "lost"}[s]
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
	lapsed                 // it was given up, and the server's lease is over too
	abandoned              // the client closes
	events
)

// transitions is the whole machine: the state that follows each state at each event.
var transitions = [...][events]State{
	//           confirmed   refused   limited     expired     givenUp     givenBack   lapsed      abandoned
	Confirming: {Held, Lost, Stopping, GivingBack, GivingBack, Confirming, Confirming, Lost},
	Held:       {Held, Lost, Stopping, GivingBack, GivingBack, Held, Held, Lost},
	Stopping:   {Stopping, Lost, Stopping, GivingBack, GivingBack, Stopping, Stopping, Lost},
	GivingBack: {GivingBack, Released, GivingBack, GivingBack, GivingBack, Released, Released, GivingBack},
	Released:   {Released, Released, Released, Released, Released, Released, Released, Released},
	Lost:       {Lost, Lost, Lost, Lost, Lost, Lost, Lost, Lost},
}

// move is the only place that changes a state.
func (l *Lease) move(e event) { l.state = transitions[l.state][e] }
