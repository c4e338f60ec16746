package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// crowd is who wants the one lock.
type crowd struct {
	processes  int // 0: all in this process
	clients    int // of each process
	goroutines int // of each client
	hold       time.Duration
}

func (c crowd) String() string {
	who := fmt.Sprintf("%d clients", c.clients)
	switch {
	case c.processes > 0:
		who = fmt.Sprintf("%d processes of %d goroutines", c.processes, c.goroutines)
	case c.clients == 1:
		who = fmt.Sprintf("%d goroutines in one process", c.goroutines)
	}
	return fmt.Sprintf("%s, holds of %d ms", who, c.hold.Milliseconds())
}

func hot(quick bool) workload {
	h := workload{
		Name: "hot", Title: "One hot lock",
		Columns: []string{mRate, mP50, mP99, mFair, mStranded, mIdle, mCommands, mInside, mServerCPU, mClientCPU, mAllocs, mBytes},
		Note: "All want the same lock all the time. A client has a connection of its own, as a process would. A hold of 1 or 20 ms sleeps " +
			"under the lock; the idle time is from the end of one hold to the begin of the next. A plain counter under the lock, and a check " +
			"that nobody else is inside, accompany every run: a lock that lets two in ends the benchmark. Left waiting, of all rounds, are those " +
			"who got nothing for longer than a lease after all others were done, with the lock free; one of holdfast ends the benchmark.",
	}
	for _, hold := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
		for _, c := range []crowd{{0, 1, 32, hold}, {0, 2, 1, hold}, {0, 8, 1, hold}, {0, 32, 1, hold}, {0, 128, 1, hold}, {8, 1, 8, hold}} {
			if quick && hold > 0 && c.clients != 8 {
				continue
			}
			h.Cells = append(h.Cells, cell{Case: c.String(), Run: func(ctx context.Context, w *world, r rival) (values, error) {
				return w.hot(ctx, r, c, c.pace(quick))
			}})
		}
	}
	return h
}

// pace is longer for long holds, of which fewer go into a second.
func (c crowd) pace(quick bool) pace {
	p := paceOf(quick)
	if c.hold > 5*time.Millisecond {
		p.measure *= 2
	}
	return p
}

const hotName = "hot"

func (w *world) hot(ctx context.Context, r rival, c crowd, p pace) (values, error) {
	s, err := w.whereFor(ctx, r)
	if err != nil {
		return nil, err
	}
	g, err := newGuard()
	if err != nil {
		return nil, err
	}
	defer g.remove()
	g.timed = c.hold > 0
	if c.processes > 0 {
		return w.hotProcesses(ctx, s, r, c, g, p)
	}
	opened, err := openMany(ctx, r, s.place, use{Lease: lease}, c.clients)
	if err != nil {
		return nil, err
	}
	defer closeAll(opened)
	h := hammer{hold: c.hold, guard: g}
	for _, l := range opened {
		for range c.goroutines {
			h.contenders = append(h.contenders, contender{l, []string{hotName}})
		}
	}
	return w.watched(ctx, s, r, h, p)
}

func (w *world) hotProcesses(ctx context.Context, s *site, r rival, c crowd, g *guard, p pace) (values, error) {
	children := make([]*reexec.Process, c.processes)
	defer func() {
		for _, child := range children {
			if child != nil {
				_ = child.Close()
			}
		}
	}()
	var err error
	for i := range children {
		o := order{Rival: r.Name, Place: s.place, Use: use{Lease: lease}, Lock: hotName, Goroutines: c.goroutines,
			Hold: c.hold, Guard: g.file}
		if children[i], err = reexec.Start(roleHammer, o); err != nil {
			return nil, err
		}
	}
	for _, child := range children {
		if _, err := child.Hear(); err != nil {
			return nil, err
		}
	}
	return w.conduct(ctx, s, r, children, g, p)
}

// conduct gives all children the same window and reads the server's account around it.
func (w *world) conduct(ctx context.Context, s *site, r rival, children []*reexec.Process, g *guard, p pace) (values, error) {
	begin := time.Now().Add(p.warm)
	text, err := json.Marshal(window{begin, begin.Add(p.measure)})
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		if err := child.Say(string(text)); err != nil {
			return nil, err
		}
	}
	if err := sleepUntil(ctx, begin); err != nil {
		return nil, err
	}
	before, err := w.account(s)
	if err != nil {
		return nil, err
	}
	if err := sleepUntil(ctx, begin.Add(p.measure)); err != nil {
		return nil, err
	}
	after, err := w.account(s)
	if err != nil {
		return nil, err
	}
	parts := make([]tally, len(children))
	for i, child := range children {
		line, err := child.Hear()
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(line), &parts[i]); err != nil {
			return nil, err
		}
	}
	t := merge(parts)
	if err := t.check(r, g); err != nil {
		return nil, err
	}
	return valuesOf(r, t, after.sub(before)), nil
}
