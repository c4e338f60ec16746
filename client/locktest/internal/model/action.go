package model

import "fmt"

// Move is what can happen next.
type Move uint8

// The moves. Those up to lastOrderly are what goes on when nothing fails any more.
const (
	Run      Move = iota // the server runs a client's call
	RunStray             // the server runs a call that nobody waits for any more
	Hear                 // a reply arrives; who asked for a busy lock waits for it
	Turn                 // a reply arrives; who asked for a busy lock does not wait
	Read                 // a message of a grant arrives
	Ask                  // a waiter asks again
	Resub                // a waiter subscribes again
	Learn                // a client finds the new primary
	GiveBack             // a holder releases
	Sync                 // the replica catches up with the primary
	Missed               // a client stops waiting for an answer that nobody will give
	Tick                 // time passes
	Begin0               // a client begins with an acquire of lock 0, or of lock 1
	Begin1
	Line0 // a client begins with a wait for lock 0, or for lock 1
	Line1
	Notice // the server notices that a client died
	lastOrderly
	RunLost   // the server runs a client's call, the reply is lost and the call repeated
	Again     // a client repeats its call: the answer takes too long
	Stop      // a client does not want the lock any more
	Keep      // a holder renews
	LoseStray // a call that nobody waits for is lost
	LoseNote  // a message of a grant is lost
	Unsub     // a waiter's connection is lost
	Crash     // a client dies
	Smash     // an operator breaks lock 0
	Fail      // a failover
	Instant   // a microsecond passes
	moves
)

var moveNames = [moves]string{
	Run:       "the server runs the %s of",
	RunStray:  "the server runs a late %s of",
	Hear:      "the reply reaches",
	Turn:      "the reply turns away",
	Read:      "the message of a grant reaches",
	Ask:       "asks again:",
	Resub:     "subscribes again:",
	Learn:     "finds the new primary:",
	GiveBack:  "releases:",
	Sync:      "the replica catches up",
	Missed:    "gets no answer, and repeats its call:",
	Tick:      "a tick passes",
	Begin0:    "begins with an acquire of lock 0:",
	Begin1:    "begins with an acquire of lock 1:",
	Line0:     "begins with a wait for lock 0:",
	Line1:     "begins with a wait for lock 1:",
	Notice:    "the server notices the death of",
	RunLost:   "the reply is lost to, and repeated, the %s of",
	Again:     "repeats its call:",
	Stop:      "does not want the lock any more:",
	Keep:      "renews:",
	LoseStray: "a late call is lost, of",
	LoseNote:  "a message of a grant is lost, to",
	Unsub:     "loses its connection:",
	Crash:     "dies:",
	Smash:     "an operator breaks the lock",
	Fail:      "a failover",
	Instant:   "a microsecond passes",
}

// Action is a move of a client. Those of nobody have client 0.
type Action struct {
	Move   Move
	Client uint8
}

// alone reports whether a move is of no client.
func (m Move) alone() bool {
	return m == Sync || m == Tick || m == Smash || m == Fail || m == Instant
}

// urgent reports whether a move happens before time passes, when nothing fails any more.
func (m Move) urgent() bool { return m < Tick }

// orderly reports whether a move happens when nothing fails any more. Time passes only when nothing
// is urgent.
func (m Move) orderly(urgent bool) bool { return m < lastOrderly && (m != Tick || !urgent) }

func (a Action) describe(s *State, name string) string {
	c := &s.Clients[a.Client]
	text := moveNames[a.Move]
	switch a.Move {
	case Run, RunLost:
		text = fmt.Sprintf(text, c.Call.Kind)
	case RunStray:
		text = fmt.Sprintf(text, c.Stray.Kind)
	}
	if a.Move.alone() {
		return text
	}
	return text + " " + name
}
