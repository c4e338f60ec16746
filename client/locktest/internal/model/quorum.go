package model

// Quorum is the lock at three servers that know nothing of each other: a majority of votes decides.
// Times are ticks.
type Quorum struct {
	Bounds
	Clients int // at most maxClients
	Lines   int // how many of the clients wait in the line, which is at server 0

	Lease       int8
	Provisional int8
	Line        int8
	Guard       int8 // a server whose memory is younger does not vote

	Crashes  uint8 // how many clients may die
	Restarts uint8 // how often a server may come back empty
	Losses   uint8 // how often a key may be deleted at a server, or its lease end early there
	Strays   uint8 // how many calls that ask for a vote may be run after the owner gave up
	Raises   bool  // calls that raise count among these
	Ahead    uint8 // how many servers have clocks that are ahead of all tokens; those of the others stand still
	Behind   bool  // the clock of a server that comes back is behind the tokens that it forgot

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
	OneRound             // there is no second round
	RaiseAtOne           // a token is raised at one server
	FirstToken           // the token that is raised is that of the first vote
	Unremembered         // a server does not remember the token that it was raised to
	Unguarded            // a server votes whose memory is too young
	CountedTwice         // a repeated vote counts as that of another server
	OwnerAgain           // an owner string is used again after it was given back
	OldVotes             // the votes for the owner before count
	OneRenews            // a renewal counts by one server
	LateCount            // a lease is counted from the answers, not from before the first call
	EndlessTurn          // a turn in the line has no end
	LongBelief           // a client counts on its lease for a tick longer than the servers
	mistakes
)

func (m Mistake) String() string {
	return [...]string{"none", "one vote of three is enough", "no second round", "raised at one server only",
		"raised to the token of the first vote", "a raised token is not remembered",
		"a vote of a server too young", "a vote that counts twice", "an owner used again",
		"votes for the owner before", "renewed by one of three", "lease counted from the answers",
		"a turn in the line without an end",
		"a lease that lasts longer than the servers'"}[m]
}

// rules are those of each server.
func (q *Quorum) rules() *Config {
	cfg := &Config{Clients: q.Clients, Lease: q.Lease, Provisional: q.Provisional, Line: q.Line,
		Silence: 2, Level: Guarded, Guard: q.Guard, Coarse: true}
	switch q.Flaw {
	case Unremembered:
		cfg.Flaw = ForgetRaise
	case EndlessTurn:
		cfg.Flaw = EndlessProvision
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
