package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// The roles of this program as the other processes that a workload needs. They end when their input
// does, so that none outlives its parent.
const (
	roleHolder = "holder" // takes a lock, says so, and keeps it
	roleHammer = "hammer" // takes a lock again and again
	roleEtcd   = "etcd"   // serves etcd, and answers each line with the CPU time it spent
	roleSide   = "side"   // measures the cells that it is told
)

var roles = map[string]reexec.Role{
	roleHolder: ordered(order.keep),
	roleHammer: ordered(order.hammer),
	roleEtcd:   serveEtcd,
	roleSide:   measureCells,
}

// order says what a holder or a hammer is to do.
type order struct {
	Rival      string
	Place      place
	Use        use
	Lock       string
	Goroutines int
	Hold       time.Duration
	Guard      string
}

// window is when a hammer measures, by the wall clock that processes share.
type window struct{ Begin, End time.Time }

// undisturbed lets the terminal and timeout(1), which signal the whole group, end the parent only:
// it cleans up, and ends its children by their input.
func undisturbed() { signal.Ignore(os.Interrupt, syscall.SIGTERM) }

// ordered opens the rival of an order for a role that uses it.
func ordered(play func(order, locker, *reexec.Parent) error) reexec.Role {
	return func(p *reexec.Parent) error {
		undisturbed()
		var o order
		if err := p.Job(&o); err != nil {
			return err
		}
		r, err := rivalNamed(o.Rival)
		if err != nil {
			return err
		}
		l, err := r.Open(context.Background(), o.Place, o.Use)
		if err != nil {
			return err
		}
		defer l.Close()
		return play(o, l, p)
	}
}

func (o order) keep(l locker, p *reexec.Parent) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if _, err := l.Lock(ctx, o.Lock); err != nil {
		return err
	}
	p.Say("held")
	_, err := io.Copy(io.Discard, p.In)
	return err
}

func (o order) hammer(l locker, p *reexec.Parent) error {
	g, err := openGuard(o.Guard)
	if err != nil {
		return err
	}
	defer g.close()
	g.timed = o.Hold > 0
	h := hammer{hold: o.Hold, guard: g}
	for range o.Goroutines {
		h.contenders = append(h.contenders, contender{l, []string{o.Lock}})
	}
	p.Say("ready")
	var w window
	if err := json.NewDecoder(p.In).Decode(&w); err != nil {
		return err
	}
	h.begin, h.end = w.Begin, w.End
	t, err := h.run(context.Background())
	if err != nil {
		return err
	}
	t.Waits.pack()
	t.Idle.pack()
	return json.NewEncoder(os.Stdout).Encode(t)
}
