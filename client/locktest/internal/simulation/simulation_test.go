package simulation_test

import (
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/simulation"
)

const always = 1000 * time.Hour

// TestReplay runs the schedule of HOLDFAST_SEED, up to HOLDFAST_TIMES times (default 10) until it
// breaks an invariant: the same seed is the same scenario, and where two things happen at one
// instant the runtime chooses. HOLDFAST_TRACE is a file for all events.
func TestReplay(t *testing.T) {
	if os.Getenv("HOLDFAST_SEED") == "" {
		t.Skip("no HOLDFAST_SEED")
	}
	seed, times := setting(t, "HOLDFAST_SEED", 0, seedOf), setting(t, "HOLDFAST_TIMES", 10, strconv.Atoi)
	runtime.GOMAXPROCS(1)
	var trace io.Writer
	if path := os.Getenv("HOLDFAST_TRACE"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		trace = f
	}
	for n := 0; n < times && !t.Failed(); n++ {
		began := time.Now()
		r := simulation.Run(t, seed, simulation.Options{Profile: os.Getenv("HOLDFAST_PROFILE"), Trace: trace})
		t.Logf("seed %d in %v\n%v", seed, time.Since(began), r)
		for _, v := range r.Broken {
			t.Errorf("%v", v)
		}
	}
}

// TestSimulation runs the schedules that found something once, and then others from HOLDFAST_SEED on
// (default: by the time): for HOLDFAST_SIMULATE (default 10s), or HOLDFAST_SCHEDULES of them. They are of
// HOLDFAST_PROFILE, and HOLDFAST_PROCESSES (default: one for each CPU) play them. An interrupt ends it.
func TestSimulation(t *testing.T) {
	profile := os.Getenv("HOLDFAST_PROFILE")
	if profile == "" { // once is enough, for those who play all profiles
		replayCorpus(t)
	}
	began := time.Now()
	first, limit := setting(t, "HOLDFAST_SEED", uint64(began.UnixMilli()), seedOf), setting(t, "HOLDFAST_SIMULATE", 10*time.Second, time.ParseDuration)
	s := &series{binary: this(t), job: job{Seed: first, End: math.MaxUint64, Profile: profile}}
	if count := setting(t, "HOLDFAST_SCHEDULES", 0, seedOf); count > 0 {
		s.End, limit = first+count, always
	}
	s.simulate(t, limit)
	t.Logf("%q, seeds %d to %d, %d processes, %v\n%v", profile, first, s.Seed-1, processes(t), time.Since(began).Round(time.Millisecond), s.total)
}

// replayCorpus runs the seeds that found something once. A change of the generator gives a seed
// another meaning.
func replayCorpus(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		number, profile, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number == "" {
			continue
		}
		seed, err := seedOf(number)
		if err != nil {
			t.Fatalf("testdata/seeds: %q: %v", line, err)
		}
		s := &series{binary: this(t), job: job{Seed: seed, End: seed + 1, Profile: profile}}
		s.simulate(t, always)
	}
}
