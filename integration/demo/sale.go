package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// A plan says what kind of sale it is.
type plan struct {
	name     string
	locked   bool
	incident incident
}

// An incident is what happens to one process while it holds the lock.
type incident int

const (
	none   incident = iota
	killed          // SIGKILL: it never comes back
	paused          // SIGSTOP: it comes back much later, and writes
)

// A sale is one sale as the parent runs it: it starts the processes, listens to
// them, strikes one of them, and counts.
type sale struct {
	plan  plan
	size  size
	job   job
	shop  *shop
	locks *client.Client
	out   *display

	events  chan event
	all     []*process
	victim  *process // in a sale with an incident
	ready   int
	started time.Time
	due     bool // the victim was sent to get the lock
	woken   bool // a paused victim goes on
	result  result
}

// hold holds the sale and blocks until all processes are gone. When ctx ends it
// kills them.
func (s *sale) hold(ctx context.Context) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, lastGo)
	defer cancel()
	if err := s.shop.open(ctx, s.size.Stock); err != nil {
		return result{}, err
	}
	s.result.plan, s.result.size = s.plan, s.size
	s.events = make(chan event, 64)
	defer func() {
		cancel() // first, or a process that has something to say would block its kill
		for _, p := range s.all {
			p.Kill()
		}
	}()
	if err := s.start(ctx); err != nil {
		return result{}, err
	}
	if err := s.listen(ctx); err != nil {
		return result{}, err
	}
	s.result.took = time.Since(s.started)
	var err error
	s.result.sold, s.result.ordered, err = s.shop.books(ctx)
	s.out.done(s.line())
	return s.result, err
}

func (s *sale) start(ctx context.Context) error {
	s.out.say("")
	s.out.say("%s: %d in stock, %d buyers, %d processes", s.plan.name, s.size.Stock, s.size.Buyers, s.size.Processes)
	for i := range s.size.Processes {
		j := s.job
		j.Buyers = (s.size.Buyers + i) / s.size.Processes // they add up
		if err := s.add(ctx, j); err != nil {
			return err
		}
	}
	if s.plan.incident != none {
		if err := s.add(ctx, s.job); err != nil {
			return err
		}
		s.victim = s.all[len(s.all)-1]
	}
	return nil
}

func (s *sale) add(ctx context.Context, j job) error {
	p, err := start(ctx, j, s.events)
	if err == nil {
		s.all = append(s.all, p)
	}
	return err
}

// listen follows the sale to its end.
func (s *sale) listen(ctx context.Context) error {
	refresh := time.NewTicker(100 * time.Millisecond)
	defer refresh.Stop()
	for alive := len(s.all); alive > 0; {
		select {
		case e := <-s.events:
			if e.Kind == exited {
				alive--
			}
			if err := s.hear(ctx, e, alive); err != nil {
				return err
			}
		case <-refresh.C:
			s.out.progress(s.line())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *sale) hear(ctx context.Context, e event, alive int) error {
	switch {
	case e.Kind == ready:
		if s.ready++; s.ready == len(s.all) {
			s.opens()
		}
		return nil
	case e.Kind == exited:
		if e.from.err != nil && !(e.from == s.victim && s.plan.incident == killed && e.from.wasKilled()) {
			return fmt.Errorf("a process failed: %w", e.from.err)
		}
	case e.Kind == holding:
		if err := s.strike(ctx, e); err != nil {
			return err
		}
	case e.from == s.victim:
		s.lastWords(e)
	default:
		s.count(e)
	}
	if s.victim == nil {
		return nil
	}
	return s.direct(alive == 1)
}

// direct tells the victim what to do when its time has come, or when it is alone: then it is now or
// never.
func (s *sale) direct(alone bool) error {
	if !s.due && (s.result.heard >= s.size.Stock/4 || alone) {
		s.due = true
		s.victim.tell(begin)
	}
	// Long enough for a late write to do harm: others have sold since.
	if s.result.struck && !s.woken && (s.result.since >= s.size.Stock/10 || alone) {
		s.woken = true
		return s.wake()
	}
	return nil
}

// opens lets the buyers in, all at the same time.
func (s *sale) opens() {
	s.started = time.Now()
	for _, p := range s.all {
		if p != s.victim {
			p.tell(begin)
		}
	}
}

// count takes down what one of the buyers' processes says.
func (s *sale) count(e event) {
	switch e.Kind {
	case sold:
		s.result.heard++
	case soldOut:
		s.result.turnedAway++
	case refused:
		s.result.late++
		s.out.say("  a buyer came too late and was refused: %s", e.Text)
	}
	if s.result.struck && e.Fence > s.result.fence {
		s.result.since++
		// News comes in any order; the next holder is the one with the next token.
		if s.result.next.Fence == 0 || e.Fence < s.result.next.Fence {
			s.result.next = e
		}
	}
}

// strike kills or pauses the victim, which has just said that it holds the
// lock, and then asks the server whether it really does.
func (s *sale) strike(ctx context.Context, e event) error {
	s.result.fence = e.Fence
	verb := "killed"
	if s.plan.incident == killed {
		s.victim.Kill()
	} else {
		if err := s.victim.Signal(syscall.SIGSTOP); err != nil {
			return fmt.Errorf("pause a process: %w", err)
		}
		verb = "paused"
	}
	asked := time.Now()
	info, err := s.locks.Inspect(ctx, s.shop.name)
	if err != nil {
		return err
	}
	// The earliest that the lease can end: its rest was counted after we asked.
	s.result.leaseEnd = asked.Add(info.Remaining)
	s.result.struck = true
	s.result.held = info.Held && info.Fence == e.Fence
	s.out.say("  %s process %d while it holds the lock (token %d); its lease lasts %d ms more, %d wait",
		verb, s.victim.Pid(), e.Fence, info.Remaining.Milliseconds(), info.Waiters)
	return nil
}

// wake lets a paused victim go on, with the order to write waiting for it.
func (s *sale) wake() error {
	if s.plan.incident != paused {
		return nil
	}
	s.victim.tell(write)
	return s.victim.Signal(syscall.SIGCONT)
}

// lastWords takes down how the victim's late write went.
func (s *sale) lastWords(e event) {
	switch e.Kind {
	case refused:
		s.result.stale = true
		s.out.say("  resumed it: its write with token %d was refused, token %d was here; it says %q",
			e.Fence, s.result.next.Fence, e.Text)
	case sold:
		s.out.say("  resumed it: its write with token %d went through", e.Fence)
	}
}

// line is how the sale stands.
func (s *sale) line() status {
	st := status{sold: s.result.heard, stock: s.size.Stock, away: s.result.turnedAway, took: s.result.took}
	if s.result.sold > 0 {
		st.sold = s.result.sold
	} else if !s.started.IsZero() {
		st.took = time.Since(s.started)
	}
	return st
}
