package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// section is one workload as the report explains it.
type section struct {
	name, title, note string
	columns           []string
}

var sections = []section{
	{"uncontended", "Nobody waits", "One client. Each goroutine takes and releases locks that no other goroutine wants at the time.", costs},
	{"hot", "One hot lock", "All want the same lock all the time. A client has a connection of its own, as a process would. A plain counter under " +
		"the lock, and a check that nobody else is inside, accompany every run: a lock that lets two in ends the benchmark. Left waiting are " +
		"those who got nothing for longer than a lease after the end, with the lock free; one of holdfast ends the benchmark.",
		slices.Concat([]string{mRate, mP99, mFair, mStranded}, costs[2:])},
	{"try", "Try on a lock that another holds", "One client asks without waiting and is refused each time; all numbers are per try.", costs},
	{"quorum", "Five servers that know nothing of each other", "One client, a lock of a majority; nobody else wants it. All servers share one core.", costs},
	{"held", "Many locks held", fmt.Sprintf("One client takes so many locks under a lease of %v and holds them; a second one may wait for each, in a goroutine "+
		"for each. Heap and stack are what the process has more of after a collection, for each lock. Only Holdfast has a part in it.", lease),
		[]string{mHeap, mStack, mClientShare, mServerShare, mCommandsASecond}},
}

// The metrics.
const (
	mRate, mP50, mP99, mFair                     = "rate", "p50", "p99", "fairness"
	mStranded                                    = "left waiting"
	mCommands, mServerCPU, mInCommands           = "commands", "server cpu", "in commands"
	mClientCPU, mAllocs, mBytes                  = "client cpu", "allocs", "bytes"
	mHeap, mStack                                = "heap", "stack"
	mClientShare, mServerShare, mCommandsASecond = "client share", "server share", "commands a second"
)

var costs = []string{mRate, mP50, mP99, mCommands, mServerCPU, mInCommands, mClientCPU, mAllocs, mBytes}

// labels head the columns of the report.
var labels = map[string]string{
	mRate: "per second", mP50: "wait p50 µs", mP99: "wait p99 µs", mFair: "most / least served", mStranded: "left waiting",
	mCommands: "commands", mServerCPU: "server CPU µs", mInCommands: "in commands µs", mClientCPU: "client CPU µs",
	mAllocs: "allocs", mBytes: "bytes", mHeap: "heap bytes a lock", mStack: "stack bytes a lock",
	mClientShare: "client CPU %", mServerShare: "server CPU %", mCommandsASecond: "commands a second",
}

// values are the numbers of one run, by metric. What is not known is left out.
type values map[string]float64

// What a cell does: goroutines with names of their own; all on one name; tries; locks that are held.
const (
	spreadKind = iota
	hotKind
	tryKind
	heldKind
)

// cell is one case of a workload. It is measured for each player in each round.
type cell struct {
	workload, title     string
	kind                int
	several             bool // servers
	clients, goroutines int  // goroutines of each client
	names               int  // that are held
	waiters             bool // one for each
}

func cells() []cell {
	hot := func(clients, goroutines int) cell {
		title := fmt.Sprintf("clients: %d, goroutines of each: %d", clients, goroutines)
		return cell{workload: "hot", title: title, kind: hotKind, clients: clients, goroutines: goroutines}
	}
	return []cell{
		{workload: "uncontended", title: "1 goroutine", clients: 1, goroutines: 1},
		{workload: "uncontended", title: "64 goroutines, a name each", clients: 1, goroutines: 64},
		hot(1, 32), hot(8, 1), hot(128, 1), hot(8, 8),
		{workload: "try", title: "1 goroutine", kind: tryKind, clients: 2, goroutines: 1}, // one client holds it
		{workload: "try", title: "64 goroutines", kind: tryKind, clients: 2, goroutines: 64},
		{workload: "quorum", title: "1 goroutine", several: true, clients: 1, goroutines: 1},
		{workload: "quorum", title: "64 goroutines, a name each", several: true, clients: 1, goroutines: 64},
		{workload: "held", title: "10,000 locks", kind: heldKind, clients: 1, names: 10_000},
		{workload: "held", title: "100,000 locks", kind: heldKind, clients: 1, names: 100_000},
		{workload: "held", title: "2,000 locks, each with a waiter", kind: heldKind, clients: 2, names: 2000, waiters: true},
	}
}

func workloadNames() (list []string) {
	for _, s := range sections {
		list = append(list, s.name)
	}
	return list
}

func (c cell) columns() []string {
	return sections[slices.IndexFunc(sections, func(s section) bool { return s.name == c.workload })].columns
}

// lease is that of all locks.
const lease = 10 * time.Second

// measure measures the cell with a rival.
func (c cell) measure(ctx context.Context, w *world, r rival) (values, error) {
	s, err := w.site(ctx, c.several)
	if err != nil {
		return nil, err
	}
	p := s.place
	p.Tuned = r.Tuned
	var opened []locker
	defer func() {
		for _, l := range opened {
			l.Close()
		}
	}()
	for range c.clients {
		l, err := r.Open(p, lease)
		if err != nil {
			return nil, err
		}
		opened = append(opened, l)
	}
	if c.kind == heldKind {
		return c.held(ctx, s, r, opened, w.quick)
	}
	h := hammer{warm: 300 * time.Millisecond, window: time.Second}
	if w.quick {
		h.warm, h.window = 50*time.Millisecond, 100*time.Millisecond
	}
	const one = "bench:0"
	switch c.kind {
	case spreadKind:
		for i := range c.goroutines {
			h.contenders = append(h.contenders, contender{opened[0].Lock, fmt.Sprintf("bench:%d", i)})
		}
	case hotKind:
		h.guard = &guard{}
		for _, l := range opened {
			for range c.goroutines {
				h.contenders = append(h.contenders, contender{l.Lock, one})
			}
		}
	case tryKind:
		held, err := opened[0].TryLock(ctx, one)
		if err != nil {
			return nil, err
		}
		defer func() { _ = held.Unlock() }()
		for range c.goroutines {
			h.contenders = append(h.contenders, contender{refused(opened[1]), one})
		}
	}
	t, spent, err := h.run(ctx, s)
	if err == nil && t.stranded > 0 && r.Name == holdfastName {
		err = fmt.Errorf("%d were left waiting for a free lock", t.stranded)
	}
	if err != nil {
		return nil, err
	}
	v := t.values(spent, r)
	if c.kind != hotKind {
		delete(v, mFair) // they do not want the same
	}
	return v, nil
}

// refused makes a contender of tries: it takes nothing, and succeeds if it is refused.
func refused(l locker) func(context.Context, string) (hold, error) {
	return func(ctx context.Context, name string) (hold, error) {
		_, err := l.TryLock(ctx, name)
		if err == nil {
			return hold{}, errors.New("the lock is broken: a try took a lock that another holds")
		}
		if !errors.Is(err, errBusy) {
			return hold{}, err
		}
		return hold{Unlock: func() error { return nil }}, nil
	}
}
