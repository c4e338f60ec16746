package model

// Quorum is the lock at three servers that know nothing of each other: a majority of votes decides.
// Times are ticks.
type Quorum struct {
	Bounds
	Clients int // at most maxClients

	Lease int8
	Guard int8 // a server whose memory is younger does not vote

	Crashes  uint8 // how many clients may die
	Restarts uint8 // how often a server may come back empty
	Losses   uint8 // how often a key may be deleted at a server, or its lease end early there
	Strays   uint8 // how many calls that ask for a vote may be run after the owner gave up
	Raises   bool  // calls that raise count among these
	Ahead    uint8 // how many servers have clocks that are ahead of all tokens; those of the others stand still
	Behind   bool  // the clock of a server that comes back is behind the tokens that it forgot

	Calm bool // nothing fails

	Flaw Mistake
}

const (
	members  = 3
	majority = 2
)

// Mistake is one rule of the quorum's clients, or servers, that is broken on purpose.
type Mistake uint8

// The mistakes.
const (
	NoMistake    Mistake = iota
	OneIsEnough          // one vote of three is enough
	Unraised             // the highest token of the votes is not raised at the others
	LowToken             // the token is the lowest one of the votes
	Unremembered         // a server does not remember the token that it was raised to
	Unguarded            // a server votes whose memory is too young
	CountedTwice         // a repeated vote counts as that of another server
	OwnerAgain           // an owner string is used again after it was given back
	OneRenews            // a renewal counts by one server
	LateCount            // a lease is counted from the answers, not from before the first call
	NoLead               // all servers are asked at once
	LongBelief           // a client counts on its lease for a tick longer than the servers
	mistakes
)

func (m Mistake) String() string {
	return [...]string{"none", "one vote of three is enough", "a token that one server knows",
		"the lowest token of the votes", "a raised token is not remembered",
		"a vote of a server too young", "a vote that counts twice", "an owner used again",
		"renewed by one of three", "lease counted from the answers",
		"all are asked at once", "a lease that lasts longer than the servers'"}[m]
}

// rules are those of each server.
func (q *Quorum) rules() *Config {
	cfg := &Config{Clients: q.Clients, Lease: q.Lease, Silence: 2, Level: Guarded, Guard: q.Guard, Coarse: true}
	if q.Flaw == Unremembered {
		cfg.Flaw = ForgetAhead
	}
	return cfg
}

// polled is a quorum as it is explored.
type polled struct {
	*Quorum
	rules *Config
	saw   Witness
}

// ExploreQuorum visits all states that the quorum can reach, breadth first. It stops at the first
// violation that is not admitted.
func ExploreQuorum(q Quorum, saw Witness) (*Report[Deed], error) {
	return explore[Poll, Deed](&polled{&q, q.rules(), saw})
}
