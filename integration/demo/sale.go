// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// A plan says what kind of sale it is, and what happens to one process while it
// holds the lock: SIGKILL, of which it never comes back; or SIGSTOP: it comes
// back much later, and writes.
type plan struct {
	name     string
	locked   bool
	incident syscall.Signal
}

// A sale is one sale as the parent runs it: it starts the processes, listens to
// them, strikes one of them, and counts.
type sale struct {
	result
	job   job
	shop  *shop
	locks *client.Client

	events  chan event
	all     []*reexec.Process
	victim  *reexec.Process // in a sale with an incident
	ready   int
	started time.Time
	due     bool // the victim was sent to get the lock
	woken   bool // a paused victim goes on
}

// hold holds the sale and blocks until all processes are gone. When ctx ends it
// kills them.
func (s *sale) hold(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastGo)
	defer func() {
		cancel() // first, or a process that has something to say would block its kill
		for _, p := range s.all {
			p.Kill()
		}
	}()
	if err := s.shop.open(ctx, stock); err != nil {
		return err
	}
	s.events = make(chan event, 64)
	say("")
	say("%s: %d in stock, %d buyers, %d processes", s.plan.name, stock, buyers, processes)
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := s.listen(ctx); err != nil {
		return err
	}
	s.took = time.Since(s.started)
	var err error
	s.sold, s.ordered, err = s.shop.books(ctx)
	say("%s, %d turned away, %.1f s", bar(s.sold), s.turnedAway, s.took.Seconds())
	return err
}

// start runs this program once more for each process, and once for the victim.
// Their events go to the channel, and at last one that they exited.
func (s *sale) start(ctx context.Context) error {
	all := processes
	if s.plan.incident != 0 {
		all++
	}
	for i := range all {
		j := s.job
		if i < processes {
			j.Buyers = buyers / processes
		}
		p, err := reexec.Start(workerRole, j)
		if err != nil {
			return err
		}
		s.all = append(s.all, p)
		if j.Buyers == 0 {
			s.victim = p
		}
		go func() {
			e := event{}
			for from := json.NewDecoder(p.Out); e.Kind != exited; {
				if e = (event{from: p}); from.Decode(&e) != nil {
					_ = p.Wait()
					e.Kind = exited
				}
				select {
				case s.events <- e:
				case <-ctx.Done():
				}
			}
		}()
	}
	return nil
}

// listen follows the sale to its end.
func (s *sale) listen(ctx context.Context) error {
	for alive := len(s.all); alive > 0; {
		select {
		case e := <-s.events:
			if e.Kind == exited {
				alive--
			}
			if err := s.hear(ctx, e); err != nil {
				return err
			}
			if s.victim != nil && s.ready == len(s.all) {
				s.direct(alive == 1)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *sale) hear(ctx context.Context, e event) error {
	switch {
	case e.Kind == ready:
		if s.ready++; s.ready < len(s.all) {
			return nil
		}
		s.started = time.Now() // lets the buyers in, all at the same time
		for _, p := range s.all {
			if p != s.victim {
				_ = p.Say(begin) // one that is gone says so by its end
			}
		}
	case e.Kind == exited:
		if err := e.from.Wait(); err != nil && !(e.from == s.victim && s.struck && s.plan.incident == syscall.SIGKILL) {
			return fmt.Errorf("a process failed: %w", err)
		}
	case e.Kind == holding:
		return s.strike(ctx, e)
	case e.from == s.victim:
		s.lastWords(e)
	default:
		s.count(e)
	}
	return nil
}

// direct tells the victim what to do when its time has come, or when it is alone: then it is now or
// never.
func (s *sale) direct(alone bool) {
	if !s.due && (s.heard >= stock/4 || alone) {
		s.due = true
		_ = s.victim.Say(begin)
	}
	// Long enough for a late write to do harm: others have sold since. The order to write waits for it.
	if s.struck && !s.woken && s.plan.incident == syscall.SIGSTOP && (s.since >= stock/10 || alone) {
		s.woken = true
		_ = s.victim.Say(write)
		_ = s.victim.Signal(syscall.SIGCONT)
	}
}

// count takes down what one of the buyers' processes says.
func (s *sale) count(e event) {
	switch e.Kind {
	case sold:
		s.heard++
	case soldOut:
		s.turnedAway++
	case refused:
		say("  a buyer came too late and was refused: %s", e.Text)
	}
	if s.struck && e.Fence > s.fence {
		s.since++
		// News comes in any order; the next holder is the one with the next token.
		if s.next.Fence == 0 || e.Fence < s.next.Fence {
			s.next = e
		}
	}
}

// strike kills or pauses the victim, which has just said that it holds the
// lock, and then asks the server whether it really does.
func (s *sale) strike(ctx context.Context, e event) error {
	verb := "paused"
	if s.plan.incident == syscall.SIGKILL {
		verb = "killed"
	}
	if err := s.victim.Signal(s.plan.incident); err != nil {
		return fmt.Errorf("signal a process: %w", err)
	}
	asked := time.Now()
	info, err := s.locks.Inspect(ctx, s.shop.name)
	if err != nil {
		return err
	}
	// The earliest that the lease can end: its rest was counted after we asked.
	s.leaseEnd = asked.Add(info.Remaining)
	s.struck, s.fence = true, e.Fence
	s.held = info.Held && info.Fence == e.Fence
	say("  %s process %d while it holds the lock (token %d); its lease lasts %d ms more, %d wait",
		verb, s.victim.Pid(), e.Fence, info.Remaining.Milliseconds(), info.Waiters)
	return nil
}

// lastWords takes down how the victim's late write went.
func (s *sale) lastWords(e event) {
	switch e.Kind {
	case refused:
		s.stale = true
		say("  resumed it: its write with token %d was refused, token %d was here; it says %q",
			e.Fence, s.next.Fence, e.Text)
	case sold:
		say("  resumed it: its write with token %d went through", e.Fence)
	}
}
