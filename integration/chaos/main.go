package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// settings are the flags.
type settings struct {
	time    time.Duration
	storm   time.Duration
	seed    uint64
	out     string
	shape   string
	profile string
	keep    bool
	soak    bool
}

func main() {
	reexec.Main(roles)
	var s settings
	flag.DurationVar(&s.time, "time", time.Minute, "how long to go on: no round begins after that")
	flag.DurationVar(&s.storm, "storm", 0,
		"how long faults strike in a round; 0 chooses by -time, so that it has each deployment")
	flag.Uint64Var(&s.seed, "seed", 1, "of the first round; each later one has the next")
	flag.StringVar(&s.out, "out", filepath.Join(os.TempDir(), "holdfast-chaos"),
		"folder for the records")
	flag.StringVar(&s.shape, "deployment", "",
		"durable, memory, sentinel or cluster; empty is one after the other")
	flag.StringVar(&s.profile, "faults", "",
		"all; replicas: those that admit nothing at that level; strict: those that admit nothing "+
			"at all; guard, guard-all: those that admit nothing at the level Guard, and all, "+
			"with all callers at that level; empty is by turns")
	flag.BoolVar(&s.keep, "keep", false, "keep the whole history of rounds without violations, too")
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

// moreGuarded is by how much the storm is longer at the level Guard: half of it nobody gets a lock.
const moreGuarded = 3 * guard

// run does rounds until the time is over, and prints the totals.
func run(ctx context.Context, s settings) error {
	out, err := filepath.Abs(s.out)
	if err != nil {
		return err
	}
	if s.storm == 0 { // a quarter of the time, less what a deployment takes to start and to end
		s.storm = min(max(s.time/4-5*time.Second, 8*time.Second), 30*time.Second)
	}
	var all totals
	for began, i := time.Now(), uint64(0); time.Since(began) < s.time && ctx.Err() == nil; i++ {
		n := uint64(len(shapes))
		profile := profiles[(s.seed+i)%uint64(len(profiles))]
		r := &round{Shape: shapes[i%n].name, Profile: profile, Seed: s.seed + i, Storm: s.storm,
			Playing: playing, keep: s.keep, out: filepath.Join(out, fmt.Sprint(s.seed+i))}
		if s.shape != "" {
			r.Shape = s.shape
		}
		if s.profile != "" {
			r.Profile = s.profile
		}
		switch {
		case s.soak:
			r.Soak, r.Storm = true, s.time
		case guarded(r.Profile):
			r.Storm += moreGuarded
		}
		res, err := r.run(ctx)
		if res != nil && ctx.Err() == nil {
			all.add(res)
			fmt.Println(res)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Print(&all)
			return fmt.Errorf("round %s: %w; its record is in %s", r.name(), err, r.out)
		}
	}
	fmt.Print(&all)
	return all.err()
}
