package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// What a process tells. Each is a line.
const (
	sayCall    = "call"    // a call begins
	sayReturn  = "return"  // it is over
	sayEnter   = "enter"   // a lock is held
	sayLive    = "live"    // it still is
	sayLeave   = "leave"   // it is no more
	sayReady   = "ready"   // the clients are connected
	sayCycled  = "cycled"  // a worker has had each lock since the calm began
	sayTrouble = "trouble" // a violation
	sayFigures = "figures" // what the process has
	sayBye     = "bye"     // all clients are closed
)

// What the harness tells a process.
const (
	calmDown    = "calm"
	shutGate    = "rest"
	openGate    = "go on"
	tellFigures = "figures"
	stop        = "stop"
)

// message is one of them.
type message struct {
	What    string        `json:"w"`
	ID      int64         `json:"i,omitempty"` // of the call
	Worker  int           `json:"n,omitempty"`
	At      stamp         `json:"t,omitempty"`
	Call    string        `json:"c,omitempty"`
	Lock    string        `json:"l,omitempty"`
	Level   oracle.Level  `json:"v,omitempty"`
	Limit   time.Duration `json:"m,omitempty"`
	Outcome string        `json:"o,omitempty"`
	Owner   string        `json:"u,omitempty"`
	Token   int64         `json:"f,omitempty"`
	Start   stamp         `json:"s,omitempty"`
	Last    stamp         `json:"a,omitempty"`
	Figures *figures      `json:"g,omitempty"`
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

func (t *teller) next() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id++
	return t.id
}
