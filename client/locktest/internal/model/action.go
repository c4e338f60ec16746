// SPDX-License-Identifier: Apache-2.0

package model

import "fmt"

// Move is what can happen next.
type Move uint8

// The moves. Those up to lastOrderly are what goes on when nothing fails any more.
const (
	Run      Move = iota // the server runs a client's call
	RunBack              // the server runs what gives back
	RunStray             // the server runs a call that nobody waits for any more
	Hear                 // a reply arrives
	Read                 // a message of a grant arrives
	Ask                  // a waiter's timer has fired
	Resub                // a waiter subscribes again
	Learn                // a client finds the new primary
	GiveBack             // a holder releases
	Sync                 // the replica catches up with the primary
	Missed               // a client stops waiting for an answer that nobody will give
	Tick                 // time passes
	Enter                // somebody of a client comes
	Line                 // the same, and the lock was refused just now
	Notice               // the server notices that a client died
	lastOrderly
	RunBackLost // the same, and the reply is lost
	Again       // a client stops waiting for an answer
	Stop        // the first waiter of a client does not want the lock any more
	StopNext    // the second one
	Keep        // a holder renews
	LoseStray   // a call that nobody waits for is lost
	LoseNote    // a message of a grant is lost
	Unsub       // a waiter's connection is lost
	Crash       // a client dies
	Try         // somebody of a client comes, and does not want to wait
	Decline     // a holder gives the lock back, and never worked under it
	Deny        // a client's call is refused with an error
	Close       // a client closes
	Change      // a client hears that something has changed
	Smash       // an operator breaks the lock
	Fail        // a failover
	moves
)

var moveNames = [moves]string{
	Run:         "the server runs the %s of",
	RunBack:     "the server runs the %s in the background of",
	RunStray:    "the server runs a late %s of",
	Hear:        "the reply reaches",
	Read:        "the message of a grant reaches",
	Ask:         "asks again:",
	Resub:       "subscribes again:",
	Learn:       "finds the new primary:",
	GiveBack:    "releases:",
	Sync:        "the replica catches up",
	Missed:      "gets no answer:",
	Tick:        "a tick passes",
	Enter:       "comes:",
	Line:        "comes, and stands in line at once:",
	Notice:      "the server notices the death of",
	RunBackLost: "the reply is lost to the %s in the background of",
	Again:       "stops waiting for an answer:",
	Stop:        "the first one does not want the lock any more:",
	StopNext:    "the second one does not want the lock any more:",
	Keep:        "renews:",
	LoseStray:   "a late call is lost, of",
	LoseNote:    "a message of a grant is lost, to",
	Unsub:       "loses its connection:",
	Crash:       "dies:",
	Try:         "tries:",
	Decline:     "declines:",
	Deny:        "is refused with an error:",
	Close:       "closes:",
	Change:      "hears of a change:",
	Smash:       "an operator breaks the lock",
	Fail:        "a failover",
}

// Action is a move of a client. Those of nobody have client 0.
type Action struct {
	Move   Move
	Client uint8
}

// alone reports whether a move is of no client.
func (m Move) alone() bool {
	return m == Sync || m == Tick || m >= Smash
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
	case Run:
		text = fmt.Sprintf(text, c.Call.Kind)
	case RunBack, RunBackLost:
		text = fmt.Sprintf(text, c.Back.Kind)
	case RunStray:
		text = fmt.Sprintf(text, c.Stray.Kind)
	}
	if a.Move.alone() {
		return text
	}
	return text + " " + name
}
