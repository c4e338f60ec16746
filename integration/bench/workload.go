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
	Name, Title, Note string
	columns           []string
}

var sections = []section{
	{"uncontended", "Nobody waits", "One client. Each goroutine takes and releases locks that no other goroutine wants at the time.", costs},
	{"hot", "One hot lock", "All want the same lock all the time. A client has a connection of its own, as a process would. A plain counter under " +
		"the lock, and a check that nobody else is inside, accompany every run: a lock that lets two in ends the benchmark. Idle is the time from " +
		"the end of one hold to the begin of the next. Left waiting are those who got nothing for longer than a lease after the end, with the " +
		"lock free; one of holdfast ends the benchmark.", slices.Concat([]string{mRate, mP99, mFair, mStranded, mIdle}, costs[2:])},
	{"try", "Try on a lock that another holds", "One client asks without waiting and is refused each time; all numbers are per try.", costs},
	{"quorum", "Five servers that know nothing of each other", "One client, a lock of a majority; nobody else wants it. All servers share one core.", costs},
	{"cluster", "A Cluster of three primaries", "Each primary has a replica; all six share one core.", slices.Concat([]string{mRate, mP99, mFair}, costs[2:])},
	{"held", "Many locks held", fmt.Sprintf("One client takes so many locks under a lease of %v and holds them. Heap and stack are what the process has "+
		"more of after a collection, for each lock, and goroutines how many more there are. Missed are locks whose context ended meanwhile, or whose "+
		"key is gone. Those that renew nothing by themselves have no part in it.", lease), heldColumns},
	{"held+waiters", "Many locks held, each with a waiter", "As before, and a second client waits for each of the locks, in a goroutine for each. Then all " +
		"are released: per second is how many were handed on, and the wait is from the first release on.",
		slices.Concat([]string{mRate, mP99}, heldColumns)},
}

// The metrics.
const (
	mRate, mP50, mP99, mFair                     = "rate", "p50", "p99", "fairness"
	mIdle, mStranded                             = "idle", "left waiting"
	mCommands, mInside, mServerCPU, mInCommands  = "commands", "inside", "server cpu", "in commands"
	mClientCPU, mAllocs, mBytes                  = "client cpu", "allocs", "bytes"
	mHeap, mStack, mRoutines, mMissed            = "heap", "stack", "goroutines", "missed"
	mClientShare, mServerShare, mCommandsASecond = "client share", "server share", "commands a second"
)

var (
	costs       = []string{mRate, mP50, mP99, mCommands, mInside, mServerCPU, mInCommands, mClientCPU, mAllocs, mBytes}
	heldColumns = []string{mHeap, mStack, mRoutines, mClientShare, mServerShare, mCommandsASecond, mMissed}
)

// labels head the columns of the report.
var labels = map[string]string{
	mRate: "per second", mP50: "wait p50 µs", mP99: "wait p99 µs", mFair: "most / least served", mIdle: "idle µs", mStranded: "left waiting",
	mCommands: "commands", mInside: "inside scripts", mServerCPU: "server CPU µs", mInCommands: "in commands µs", mClientCPU: "client CPU µs",
	mAllocs: "allocs", mBytes: "bytes", mHeap: "heap bytes a lock", mStack: "stack bytes a lock", mRoutines: "goroutines", mMissed: "missed",
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
	Workload, Case string
	Kind           int
	Site           string

	clients, goroutines int // goroutines of each client
	names               int
	hold                time.Duration
	waiters             bool
	quick               bool
}

// rivalsHold is how many held locks the rivals are measured with: more take them minutes.
const rivalsHold = 10_000

// cells returns all, fewer if quick.
func cells(quick bool) (list []cell) {
	add := func(workload, title string, c cell) {
		c.Workload, c.Case, c.quick = workload, title, quick
		list = append(list, c)
	}
	add("uncontended", "1 goroutine", cell{goroutines: 1, names: 1})
	add("uncontended", "64 goroutines, a name each", cell{goroutines: 64, names: 64})
	add("uncontended", "64 goroutines, 100,000 names", cell{goroutines: 64, names: 100_000})
	hot := func(workload, site string, clients, goroutines int, hold time.Duration) {
		title := fmt.Sprintf("clients: %d, goroutines of each: %d, hold: %v", clients, goroutines, hold)
		add(workload, title, cell{Kind: hotKind, Site: site, clients: clients, goroutines: goroutines, names: 1, hold: hold})
	}
	hot("hot", singleSite, 1, 32, 0)
	hot("hot", singleSite, 8, 1, 0)
	hot("hot", singleSite, 128, 1, 0)
	hot("hot", singleSite, 8, 8, 0)
	hot("hot", singleSite, 32, 1, time.Millisecond)
	hot("hot", singleSite, 8, 1, 20*time.Millisecond)
	add("try", "1 goroutine", cell{Kind: tryKind, goroutines: 1, names: 1})
	add("try", "64 goroutines", cell{Kind: tryKind, goroutines: 64, names: 1})
	add("quorum", "1 goroutine", cell{Site: severalSite, goroutines: 1, names: 1})
	add("quorum", "64 goroutines, a name each", cell{Site: severalSite, goroutines: 64, names: 64})
	add("cluster", "64 goroutines, 6,400 names", cell{Site: clusterSite, goroutines: 64, names: 6400})
	hot("cluster", clusterSite, 8, 1, 0)
	held, waited := []int{rivalsHold, 10 * rivalsHold}, 2000
	if quick {
		held, waited = []int{1000}, 200
	}
	for _, n := range held {
		add("held", thousands(n)+" locks", cell{Kind: heldKind, names: n})
	}
	add("held+waiters", thousands(waited)+" locks", cell{Kind: heldKind, names: waited, waiters: true})
	return list
}

func workloadNames() (list []string) {
	for _, s := range sections {
		list = append(list, s.Name)
	}
	return list
}

func (c cell) columns() []string {
	return sections[slices.IndexFunc(sections, func(s section) bool { return s.Name == c.Workload })].columns
}

// lease is that of all locks.
const lease = 10 * time.Second

// window is how long a hammer warms up and how long it measures.
func (c cell) window() (warm, measure time.Duration) {
	switch {
	case c.quick:
		return 50 * time.Millisecond, 100 * time.Millisecond
	case c.hold > 5*time.Millisecond:
		return 300 * time.Millisecond, 2 * time.Second
	}
	return 300 * time.Millisecond, time.Second
}

// measure measures the cell with a rival.
func (c cell) measure(ctx context.Context, w *world, r rival) (values, error) {
	s, err := w.site(ctx, c.Site)
	if err != nil {
		return nil, err
	}
	p := s.place
	p.Tuned = r.Tuned
	if c.Kind == heldKind {
		return c.held(ctx, s, r, p)
	}
	clients := max(c.clients, 1)
	if c.Kind == tryKind {
		clients++ // who holds it
	}
	opened, err := openMany(r, p, clients)
	if err != nil {
		return nil, err
	}
	defer closeAll(opened)
	h := hammer{cell: c}
	switch c.Kind {
	case spreadKind:
		list, share := names(c.names), c.names/c.goroutines
		for i := range c.goroutines {
			h.contenders = append(h.contenders, contender{opened[0].Lock, list[i*share : (i+1)*share]})
		}
	case hotKind:
		h.guard = &guard{}
		for _, l := range opened {
			for range c.goroutines {
				h.contenders = append(h.contenders, contender{l.Lock, names(1)})
			}
		}
	case tryKind:
		held, err := opened[0].TryLock(ctx, names(1)[0])
		if err != nil {
			return nil, err
		}
		defer func() { _ = held.Unlock() }()
		for range c.goroutines {
			h.contenders = append(h.contenders, contender{refused(opened[1]), names(1)})
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
	if c.Kind != hotKind {
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

// names returns n names of locks.
func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("bench:%d", i)
	}
	return list
}
