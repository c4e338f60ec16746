// SPDX-License-Identifier: Apache-2.0

// Package supervise runs a command for as long as a lock is held: it passes signals on to it, and ends
// it when the lock is lost, or cannot be kept for much longer.
package supervise

import (
	"context"
	"io"
	"os"
	"time"
)

// Hold is what a command runs under. *client.Lock is one.
type Hold interface {
	// Context ends when the lock is lost, and its Err looks at the clock.
	Context() context.Context
	// Remaining is how long the lock may be counted on if its server says nothing more.
	Remaining() time.Duration
}

// Command is what to run.
type Command struct {
	Args           []string
	Env            []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Grace is the time between SIGTERM and SIGKILL. 0: SIGKILL at once.
	Grace time.Duration
	// Say tells the user, in a line, why the command is ended.
	Say func(line string)
}

// Result says how a command ended.
type Result struct {
	Code   int   // as a shell has it: its exit status, or 128 + n if signal n ended it
	SIGINT bool  // that ended it
	Lost   error // why it was ended, or that the lock was lost when it ended by itself; nil: neither
}

// Run starts the command and blocks until it has ended. Signals of the channel, which Catch made, are
// passed on to it.
//
// When the lock is lost, the command gets SIGTERM, and SIGKILL after Grace. When only the server is
// silent, SIGTERM comes Grace (at most a third of the lease) before the lease ends, and SIGKILL when
// it does: so an outage makes no two commands run at the same time. Where this process stood still, the
// lock may first be renewed: SIGTERM comes when a quarter of what is left is over. A command in a process
// group of its own is signalled with all of the group. What is left of the group when the command has ended
// is killed if the lock was lost, and waited for if a signal ended the command. See Shared. An error is that
// it could not be started: see StartCode.
func (c *Command) Run(hold Hold, signals chan os.Signal) (Result, error) {
	// All is ready before the command is: it can do at once what makes others send signals.
	group, lost := !Shared(), hold.Context().Done()
	if group {
		notify(signals, jobs)
	}
	p, err := c.start(group)
	if err != nil {
		return Result{}, err
	}
	say, said := c.aside()
	defer said()
	e := &ending{hold: hold, process: p, grace: c.Grace, say: say, due: time.Now().Round(0)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.ended:
			if e.why == nil {
				p.linger(hold, signals)
			}
			return e.result(), nil
		case s := <-signals:
			p.pass(s, hold)
		case <-lost:
			lost = nil
		case <-timer.C:
		}
		e.wake()
		e.look()
		wait := e.next()
		e.due = time.Now().Round(0).Add(wait)
		timer.Reset(wait)
	}
}

// mostLines is more than are said of one command, and sayWithin how long who does not read is waited for.
const (
	mostLines = 8
	sayWithin = time.Second
)

// Within says something, and waits a second at most for who does not read.
func Within(say func()) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		say()
	}()
	select {
	case <-said:
	case <-time.After(sayWithin):
	}
}

// aside is Say that never blocks: to end the command must not depend on who reads the lines. said waits
// for them.
func (c *Command) aside() (say func(string), said func()) {
	lines, all := make(chan string, mostLines), make(chan struct{})
	go func() {
		defer close(all)
		for line := range lines {
			c.Say(line)
		}
	}()
	return func(line string) { lines <- line }, func() {
		close(lines)
		Within(func() { <-all })
	}
}
