package model

// Kind is which function is called.
type Kind uint8

// The kinds. Raise is of a lock at several servers.
const (
	None Kind = iota
	Acquire
	Wait
	Renew
	Release
	Leave
	Break
	Raise
)

func (k Kind) String() string {
	return [...]string{"none", "acquire", "wait", "renew", "release", "leave", "break", "raise"}[k]
}

// Request is a call of a function.
type Request struct {
	Kind   Kind
	Owner  Owner
	Fence  Token // of renew and leave; 0: it is not given
	Raised Token // of raise
	Hold   uint8 // of a joinable lock, as a bit; 0: it is not given
}

// Reply is what the function answers.
type Reply struct {
	Yes     bool
	Fence   Token // the caller's token, or the holder's
	Holder  Owner // 0: nobody
	Rem     int8  // of the holder's lease
	Waiters int   // for wait: the caller's position
	Refused bool  // the server grants nothing now, and the caller is not in line
}

// Env is what else a call depends on.
type Env struct {
	Heard   uint8 // a bit for each client whose channel has a subscriber
	Pollers uint8 // a bit for each client that waits without a channel
	Young   bool  // the memory is younger than the guard: nothing may be granted
	Now     Token // the server's time, as tokens count it
	Last    Token // the greatest token that the server remembers
}

// Effect is what a call did.
type Effect struct {
	Lock    Lock
	Reply   Reply
	Told    Owner // a message of the grant went to this one's channel; 0: to nobody
	Lease   int8  // the lease was set to so many ticks; 0: it was left as it was
	Granted Token // the token of a new holder, who may have given the lock back already; 0: none
	Wrote   bool
	Now     Token
	Last    Token
}
