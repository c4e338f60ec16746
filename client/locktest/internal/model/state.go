// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/holdfast-go/holdfast/client/internal/queue"

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
	Void   uint8 // an operator broke what this reply grants
	Got    Token // what the reply grants, or to a wait: who else has it
}

// Stray is a call that nobody waits for any more, and that a server may run yet.
type Stray struct {
	Kind  Kind
	Past  uint8 // it is of the acquisition before
	Link  uint8
	Fence Token
}

// Note is a message of a grant on its way to a client.
type Note struct {
	For   uint8 // 1: the present acquisition, 2: the one before. 0: no message
	Left  int8
	Fence Token
	Void  uint8 // an operator broke what it tells of
}

// Client is one client, with its machines.
type Client struct {
	Queue uint16 // what its queue machine is like
	Lease uint8  // what its lease machine is like, while it has the lock by its own view; 0: it has not
	known known[Token]
	Timer uint8 // of the queue: 1: it runs, 2: it has fired
	More  uint8 // so many goroutines more than one may want the lock
	Rests uint8 // nobody comes before the next tick
	Void  uint8 // an operator broke its lock, and nobody told it yet
	Deaf  uint8 // its subscription is down
	Polls uint8 // it has none
	Link  uint8 // 1: it is still connected to the old primary
	Dead  uint8
	Call  Call
	Back  Stray // what gives back an owner's lock or place, until it is answered
	Stray Stray
	Note  Note
}

// Server is one server.
type Server struct {
	Lock  Lock
	Age   int8 // of its memory, at most Config.Guard
	Quiet int8 // ticks since it heard from its replica, at most Config.Contact+1
}

// State is everything. It is comparable, and holds nothing that does not matter.
type State struct {
	Main    Server
	Old     Server // the old primary of a split
	Replica Lock   // what the replica has; it catches up by leaps
	Now     Token  // the time, as tokens count it
	Clients [maxClients]Client
	Failed  uint8 // failovers so far
	Linger  int8  // the old primary goes on for so long
	Strayed uint8 // strays so far
	Crashed uint8
	Broken  uint8
}

// Believes reports whether the client holds the lock by its own view.
func (c *Client) Believes() bool { return c.Lease != 0 }

func (c *Client) at() *likeness { return &machines.all[c.Queue] }

// Waits reports whether the client waits for the lock and lives.
func (c *Client) Waits() bool { return c.at().state >= queue.Asking && c.at().waiting > 0 }

func (s *State) server(link uint8) *Server {
	if link == 1 {
		return &s.Old
	}
	return &s.Main
}

// locks are what the servers have.
func (s *State) locks() [3]*Lock { return [3]*Lock{&s.Main.Lock, &s.Old.Lock, &s.Replica} }

// named reports whether an owner string is anywhere but in its client.
func (s *State) named(o Owner) bool {
	for _, l := range s.locks() {
		if l.knows(o) {
			return true
		}
	}
	c := &s.Clients[o.client()]
	return c.Stray.Kind != None && c.Stray.Past == o.past() || c.Back.Kind != None && c.Back.Past == o.past() ||
		c.Note.For == 1+o.past()
}

// renameOwners gives owners other names, in all servers.
func (s *State) renameOwners(to *[2*maxClients + 1]Owner) {
	for _, l := range s.locks() {
		l.rename(to)
	}
}
