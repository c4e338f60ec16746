// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/oracle"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// settings are the flags.
type settings struct {
	time    time.Duration
	seed    uint64
	out     string
	shape   string
	profile string
	soak    bool
}

func main() {
	reexec.Main(roles)
	var s settings
	flag.DurationVar(&s.time, "time", time.Minute, "how long to go on: no round begins after that")
	flag.Uint64Var(&s.seed, "seed", 1, "of the first round; each later one has the next")
	flag.StringVar(&s.out, "out", filepath.Join(os.TempDir(), "holdfast-chaos"), "folder for the records")
	flag.StringVar(&s.shape, "deployment", "",
		"durable, quorum, sentinel, cluster or memory; empty is one after the other")
	flag.StringVar(&s.profile, "faults", "",
		"all; replicas: those that admit nothing at that level; strict: those that admit nothing "+
			"at all; guard, guard-all: those that admit nothing at the level Guard, and all, "+
			"with all callers at that level; a quorum has all, strict and guard; empty is by turns")
	flag.BoolVar(&s.soak, "soak", false,
		"one round with a storm of -time, after which nothing may have grown since its first minute")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// moreGuarded is by how much the storm is longer with a guard: half of it nobody may get a lock.
func moreGuarded(t terms) time.Duration { return 3 * t.Guard }

// run does rounds until the time is over, and prints the totals.
func run(ctx context.Context, s settings) error {
	out, err := filepath.Abs(s.out)
	if err != nil {
		return err
	}
	// a part of the time, less what a deployment takes to start and to end
	storm := min(max(s.time/time.Duration(len(shapes))-5*time.Second, 8*time.Second), 30*time.Second)
	turn, err := turns(s)
	if err != nil {
		return err
	}
	all := oracle.Counts{}
	for began, i := time.Now(), uint64(0); time.Since(began) < s.time && ctx.Err() == nil; i++ {
		d, profile := turn(i)
		r := &round{Shape: d.name, Profile: profile, Seed: s.seed + i, Storm: storm,
			out: filepath.Join(out, fmt.Sprint(s.seed+i))}
		if s.soak {
			r.Soak, r.Storm = true, s.time
		} else {
			r.Storm += moreGuarded(termsOf(d, profile))
		}
		res, err := r.run(ctx)
		if res != nil && ctx.Err() == nil {
			all.Add(res.Counts)
			all.Count(numbers, rounds, 1)
			all.Count(numbers, bad, min(1, len(res.violations)))
			fmt.Println(res)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Print(all)
			return fmt.Errorf("round %s: %w; its record is in %s", r.name(), err, r.out)
		}
	}
	fmt.Print(all)
	switch n := all[numbers]; {
	case n[rounds] == 0:
		return errors.New("no round was done")
	case n[bad] > 0:
		return fmt.Errorf("%d of %d rounds have violations", n[bad], n[rounds])
	}
	return nil
}
