package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// orderEnv holds an order as JSON: this program runs itself again as the processes that a workload needs. A child talks
// in lines and ends when its standard input does, so that none outlives its parent.
const orderEnv = "HOLDFAST_BENCH_ORDER"

// The roles of a child.
const (
	roleHolder = "holder" // takes a lock, says so, and keeps it
	roleHammer = "hammer" // takes a lock again and again
	roleEtcd   = "etcd"   // serves etcd, and answers each line with the CPU time it spent
)

// order says what a child process is to do.
type order struct {
	Role       string
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

// obey runs a child and returns when it is done.
func obey(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	// The terminal and timeout(1) signal the whole group: the parent cleans up, and ends its children by their input.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	ctx := context.Background()
	in := bufio.NewScanner(os.Stdin)
	if o.Role == roleEtcd {
		if os.Getenv(coresEnv) != "" {
			if _, err := settle(coresApart, serversRole); err != nil {
				return err
			}
		}
		return serveEtcd(in)
	}
	r, err := rivalNamed(o.Rival)
	if err != nil {
		return err
	}
	l, err := r.Open(ctx, o.Place, o.Use)
	if err != nil {
		return err
	}
	defer l.Close()
	if o.Role == roleHammer {
		return o.hammer(ctx, l, in)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	if _, err := l.Lock(ctx, o.Lock); err != nil {
		return err
	}
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (o order) hammer(ctx context.Context, l locker, in *bufio.Scanner) error {
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
	fmt.Println("ready")
	if !in.Scan() {
		return in.Err()
	}
	var w window
	if err := json.Unmarshal(in.Bytes(), &w); err != nil {
		return err
	}
	h.begin, h.end = w.Begin, w.End
	t, err := h.run(ctx)
	if err != nil {
		return err
	}
	t.Waits.pack()
	t.Idle.pack()
	return json.NewEncoder(os.Stdout).Encode(t)
}
