package model

// Phase is where a client is in its acquisition.
type Phase uint8

// The phases. A client believes that it holds the lock in Confirming and Held, while its own
// deadline has not come.
const (
	Idle       Phase = iota
	Resting          // done with an acquisition; the next one begins after a tick
	Asking           // an acquire is under way
	Standing         // waits in line, and asks again
	Verifying        // was given the lock, and asks for a confirmation before it counts
	Confirming       // was handed the lock, works, and asks for a whole lease
	Held             // works
	Releasing        // a release is under way
	Leaving          // a leave is under way
	Dead
)

func (p Phase) String() string {
	return [...]string{"idle", "resting", "asking", "standing", "verifying", "confirming", "held",
		"releasing", "leaving", "dead"}[p]
}

// Status is how far a call is.
type Status uint8

// The statuses. A reply that is lost needs none: the client may stop waiting at any time.
const (
	Pending  Status = iota // the server has not run it
	Unacked                // it ran, and the replica does not have it
	Answered               // the reply is on its way
	Gone                   // nobody will answer
)

// Call is what a client waits for the answer to.
type Call struct {
	Kind   Kind
	Status Status
	Left   int8  // of a lease that counts from when the call was sent
	Yes    uint8 // of the reply
	Newer  uint8 // the reply is newer than the message of a grant that is on its way
	Void   uint8 // an operator broke what this reply grants
	Got    Token // what the reply grants
}

// Stray is a call that nobody waits for any more, and that a server may run yet.
type Stray struct {
	Kind  Kind
	Past  uint8 // it is of the acquisition before
	Lock  uint8
	Link  uint8
	Fence Token
}

// Note is a message of a grant on its way to a client.
type Note struct {
	For   uint8 // 1: the present acquisition, 2: the one before. 0: no message
	Lock  uint8
	Left  int8
	Fence Token
	Void  uint8 // an operator broke what it tells of
}

// Client is one client, which has one acquisition at a time.
type Client struct {
	Phase Phase
	Lock  uint8
	Left  int8  // until its own deadline, in Confirming and Held
	Fence Token // what it was granted: its renewals, and its leave, name it
	Void  uint8 // an operator broke its lock, and nobody told it yet
	Due   uint8 // it is time to ask again
	Deaf  uint8 // its subscription is down
	Polls uint8 // it has none
	Link  uint8 // 1: it is still connected to the old primary
	Call  Call
	Stray Stray
	Note  Note
}

// Server is one server.
type Server struct {
	Locks [maxLocks]Lock
	Last  Token // the greatest token that it remembers
	Age   int8  // of its memory, at most Config.Guard
	Quiet int8  // ticks since it heard from its replica, at most Config.Contact+1
}

// State is everything. It is comparable, and holds nothing that does not matter.
type State struct {
	Main    Server
	Old     Server          // the old primary of a split
	Replica [maxLocks]Lock  // what the replica has; it catches up by leaps
	Now     Token           // the time, as tokens count it
	Top     [maxLocks]Token // the greatest token that was ever granted, which no server knows
	Clients [maxClients]Client
	Failed  uint8 // failovers so far
	Linger  int8  // the old primary goes on for so long
	Strayed uint8 // strays so far
	Crashed uint8
	Broken  uint8
}

// Believes reports whether the client holds the lock by its own view.
func (c *Client) Believes() bool {
	return (c.Phase == Held || c.Phase == Confirming) && c.Left > 0
}

// Waits reports whether the client waits for a lock and lives.
func (c *Client) Waits() bool { return c.Phase == Standing || c.Phase == Verifying }

func (s *State) server(link uint8) *Server {
	if link == 1 {
		return &s.Old
	}
	return &s.Main
}

// named reports whether an owner string is anywhere but in its client.
func (s *State) named(o Owner) bool {
	for i := range maxLocks {
		for _, l := range []*Lock{&s.Main.Locks[i], &s.Old.Locks[i], &s.Replica[i]} {
			if l.knows(o) {
				return true
			}
		}
	}
	c := &s.Clients[o.client()]
	return c.Stray.Kind != None && c.Stray.Past == o.past() || c.Note.For == 1+o.past()
}

// renameOwners gives owners other names, in all servers.
func (s *State) renameOwners(to *[2*maxClients + 1]Owner) {
	for i := range maxLocks {
		s.Main.Locks[i].rename(to)
		s.Old.Locks[i].rename(to)
		s.Replica[i].rename(to)
	}
}
