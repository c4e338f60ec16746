// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

// What the harness tells a process.
const (
	calmDown    = "calm"
	shutGate    = "rest"
	openGate    = "go on"
	tellFigures = "figures"
	stop        = "stop"
)

// message is what a process tells, in a line: one of these.
type message struct {
	ID      int64      `json:",omitempty"` // of a call, or of the call that got a hold
	Call    *call      `json:",omitempty"` // when it begins, and when it is over
	Hold    *hold      `json:",omitempty"` // when it is entered, now and then while it is live, and when it is over
	Trouble *violation `json:",omitempty"`
	Figures figures    `json:",omitempty"` // what the process has
	Cycled  int        `json:",omitempty"` // the worker who has had each lock since the calm began
	Ready   bool       `json:",omitempty"` // the clients are connected
	Bye     bool       `json:",omitempty"` // all clients are closed
}

// teller prints messages, each at once: the process can be killed.
type teller struct {
	mu sync.Mutex
	id int64
}

func (t *teller) say(m message) {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // a message has nothing that could fail
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = os.Stdout.Write(append(text, '\n')) // without a reader this process is about to end
}

func (t *teller) trouble(rule, lock string, at stamp, form string, args ...any) {
	v := wrong(rule, lock, at, form, args...)
	t.say(message{Trouble: &v})
}

func (t *teller) next() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id++
	return t.id
}

// called tells of a call from its beginning to its end. It begins when that is told: to tell takes
// seconds, if nobody reads at a busy machine.
func (w *worker) called(c call, f func() (outcome string, token int64)) (id int64, start stamp) {
	c.Process, c.Worker, c.ID, c.Start = w.Name, w.number, w.next(), now()
	w.say(message{ID: c.ID, Call: &c})
	c.Start = now()
	c.Outcome, c.Token = f()
	c.End = now()
	w.say(message{ID: c.ID, Call: &c})
	return c.ID, c.Start
}

// often is how often a holder tells that its lock is live: if it is killed, no more is known.
const often = 20 * time.Millisecond
