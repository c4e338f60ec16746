// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// section is one workload as the report explains it.
type section struct {
	name, short, title, note string
	columns                  []string
}

var sections = []section{
	{"uncontended", "free locks", "Nobody waits", "One client. Each goroutine takes and releases locks that no other goroutine wants at the time.", costs},
	{"hot", "one hot lock", "One hot lock", "All want the same lock all the time. A client has a connection of its own, as a process would. Left waiting are those who " +
		"got nothing for longer than a lease after the end, with the lock free; one of holdfast ends the benchmark.",
		slices.Concat([]string{mRate, mRatio, mP99, mFair, mStranded}, costs[3:])},
	{"crowd", "several holders", "A lock that several have", fmt.Sprintf("Clients as above. Whoever has the lock works for %v. Of those that share it, every twentieth lock is wanted "+
		"alone.", work), slices.Concat([]string{mRate, mRatio, mP99, mFair, mStranded}, costs[3:])},
	{"try", "tries on a held lock", "Try on a lock that another holds", "One client asks without waiting and is refused each time; all numbers are per try.", costs},
	{"quorum", "quorum of five", "Five servers that know nothing of each other", "One client, a lock of a majority; nobody else wants it. All servers share one core.", costs},
	{"cluster", "Cluster of three", "A Cluster of three primaries", "One client, and nobody waits. Each primary has a replica; all share one core.", costs},
	{"open", "a client", "A client", "Clients are opened one after the other, and each takes a lock. Then all are idle.", []string{mOpen, mIdle}},
	{"growth", "growth", "What it costs as the work grows", fmt.Sprintf("Holdfast alone. A lock that is held, under a lease of %v, and a waiter cost what is given here each "+
		"second; goroutines that take locks of their own cost it for each lock. The factor is that of one step: above 1 it grows faster than the "+
		"work does. Waiters are those of as many clients, and each of them wants each of 100 locks.", lease),
		[]string{mServerCPU, mClientCPU, mServerShare, mClientShare, mCommands, mHeap, mStack}},
}

// The metrics.
const (
	mRate, mRatio, mP99, mFair         = "rate", "ratio", "p99", "fairness"
	mStranded                          = "left waiting"
	mCommands, mServerCPU, mInCommands = "commands", "server cpu", "in commands"
	mClientCPU, mAllocs                = "client cpu", "allocs"
	mHeap, mStack, mOpen, mIdle        = "heap", "stack", "open", "idle"
	mClientShare, mServerShare         = "client share", "server share"
)

var costs = []string{mRate, mRatio, mP99, mCommands, mServerCPU, mInCommands, mClientCPU, mAllocs}

// labels head the columns of the report.
var labels = map[string]string{
	mRate: "per second", mRatio: "holdfast / it", mP99: "wait p99 µs", mFair: "most / least served", mStranded: "left waiting",
	mCommands: "commands", mServerCPU: "server CPU µs", mInCommands: "in commands µs", mClientCPU: "client CPU µs",
	mAllocs: "allocs", mHeap: "heap bytes", mStack: "stack bytes", mOpen: "open to first lock µs", mIdle: "memory of an idle client, bytes",
	mClientShare: "client, % of a core", mServerShare: "server, % of a core",
}

// values are the numbers of one run, by metric. What is not known is left out.
type values map[string]float64

// What a cell does: goroutines with names of their own; all on one name; tries; locks that are held; clients
// that open.
const (
	spreadKind = iota
	hotKind
	tryKind
	heldKind
	openKind
	crowdKind
)

// cell is one case of a workload on one server. It is measured for each player in each round.
type cell struct {
	workload, title     string
	server              int // of the flavours
	kind                int
	where               server.Kind
	clients, goroutines int    // goroutines of each client
	names               int    // of each goroutine, or held; 0 is 1
	waiters             int    // clients, each of which wants all that is held
	group               string // of growth: the steps of one
	try                 bool   // not Acquire but TryAcquire
	limit               int    // of a crowd; 0: it shares
}

// cells are all cases, each on so many servers one after the other. The small steps of growth have one: they
// would show the same on all.
func cells(servers int) (all []cell) {
	add := func(workload, title string, c cell) {
		on := servers
		if c.group != "" && c.group != "all" && c.names < 100_000 {
			on = 1
		}
		for c.server = range on {
			c.workload, c.title, c.clients = workload, title, max(1, c.clients)
			all = append(all, c)
		}
	}
	add("uncontended", "1 goroutine", cell{goroutines: 1})
	add("uncontended", "64 goroutines", cell{goroutines: 64})
	add("uncontended", "64 goroutines, 10,000 names", cell{goroutines: 64, names: 10_000 / 64})
	add("uncontended", "64 goroutines, TryAcquire", cell{goroutines: 64, try: true})
	for _, n := range []int{2, 8, 128} {
		add("hot", fmt.Sprintf("%d clients", n), cell{kind: hotKind, clients: n, goroutines: 1})
	}
	for _, n := range []int{2, 8, 32} {
		add("hot", fmt.Sprintf("%d goroutines of one client", n), cell{kind: hotKind, goroutines: n})
	}
	add("hot", "2 clients of 32 goroutines", cell{kind: hotKind, clients: 2, goroutines: 32})
	add("crowd", "limit of 10, 128 clients", cell{kind: crowdKind, clients: 128, goroutines: 1, limit: 10})
	add("crowd", "shared, 64 clients", cell{kind: crowdKind, clients: 64, goroutines: 1})
	add("try", "64 goroutines", cell{kind: tryKind, clients: 2, goroutines: 64}) // one client holds it
	add("quorum", "1 goroutine", cell{where: server.KindSeveral, goroutines: 1})
	add("quorum", "16 goroutines", cell{where: server.KindSeveral, goroutines: 16})
	add("cluster", "64 goroutines", cell{where: server.KindCluster, goroutines: 64})
	add("open", "20 clients", cell{kind: openKind, clients: 20})
	grow := func(title, group string, c cell) {
		c.group = group
		add("growth", title, c)
	}
	for n := 1000; n <= 100_000; n *= 10 {
		grow(thousands(n)+" locks held", "held", cell{kind: heldKind, names: n})
	}
	for n := 1; n <= 100; n *= 10 {
		grow(fmt.Sprintf("waiters of a lock: %d", n), "waiters", cell{kind: heldKind, names: 100, waiters: n})
	}
	for n := 1; n <= 1024; n *= 4 {
		grow("goroutines: "+thousands(n), "goroutines", cell{goroutines: n})
	}
	grow("10,000 locks held, with two waiters each for 12 s", "all", cell{kind: heldKind, names: 10_000, waiters: 2})
	return all
}

func workloadNames() (list []string) {
	for _, s := range sections {
		list = append(list, s.name)
	}
	return list
}

func (c cell) section() section {
	return sections[slices.IndexFunc(sections, func(s section) bool { return s.name == c.workload })]
}

// String is what the report calls it.
func (c cell) String() string { return c.section().short + ", " + c.title }

// lease is that of all locks.
const lease = 9 * time.Second

// work is how long a lock that several may have is held.
const work = 2 * time.Millisecond

// measure measures the cell with a rival.
func (c cell) measure(ctx context.Context, w *world, r rival) (values, error) {
	s, err := w.site(ctx, c)
	if err != nil {
		return nil, err
	}
	var opened []locker
	defer func() {
		for _, l := range opened {
			l.Close()
		}
	}()
	open := func() (locker, error) {
		l, err := r.Open(s.place, lease)
		if err == nil {
			opened = append(opened, l)
		}
		return l, err
	}
	if c.kind == openKind {
		return c.opening(ctx, open)
	}
	for range c.clients + c.waiters {
		if _, err := open(); err != nil {
			return nil, err
		}
	}
	if c.kind == heldKind {
		return c.held(ctx, s, r, opened, w.quick)
	}
	h := hammer{warm: 150 * time.Millisecond, window: 400 * time.Millisecond}
	if w.quick {
		h.warm, h.window = 20*time.Millisecond, 50*time.Millisecond
	}
	one := []string{"bench:0"}
	switch c.kind {
	case spreadKind:
		take := opened[0].Lock
		if c.try {
			take = opened[0].TryLock
		}
		for g := range c.goroutines {
			var names []string
			for i := range max(1, c.names) {
				names = append(names, fmt.Sprintf("bench:%d:%d", g, i))
			}
			h.contenders = append(h.contenders, contender{take: take, names: names})
		}
	case hotKind:
		h.guard = &guard{most: 1}
		for _, l := range opened {
			for range c.goroutines {
				h.contenders = append(h.contenders, contender{take: l.Lock, names: one})
			}
		}
	case crowdKind:
		h.work, h.guard = work, &guard{most: int64(cmp.Or(c.limit, alone))}
		for i, l := range opened {
			h.contenders = append(h.contenders, contender{beside: l.Beside, names: one, limit: c.limit, from: i})
		}
	case tryKind:
		held, err := opened[0].TryLock(ctx, one[0])
		if err != nil {
			return nil, err
		}
		defer func() { _ = held.Unlock() }()
		for range c.goroutines {
			h.contenders = append(h.contenders, contender{take: refused(opened[1]), names: one})
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
	if h.guard == nil {
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
