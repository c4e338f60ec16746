package simulation_test

import (
	"cmp"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
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
	seed, times := number(t, "HOLDFAST_SEED", 0), number(t, "HOLDFAST_TIMES", 10)
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
	for n := uint64(0); n < times && !t.Failed(); n++ {
		began := time.Now()
		r := simulation.Run(t, seed, simulation.Options{Profile: os.Getenv("HOLDFAST_PROFILE"), Trace: trace})
		t.Logf("seed %d in %v, digest %x\n%v", seed, time.Since(began), r.Digest, r)
		for _, v := range r.Broken {
			t.Errorf("%v", v)
		}
	}
}

// TestSimulation runs the schedules that found something once, and then others for HOLDFAST_SIMULATE
// (default 10s), from HOLDFAST_SEED on (default: by the time).
func TestSimulation(t *testing.T) {
	profile := os.Getenv("HOLDFAST_PROFILE")
	if profile == "" { // once is enough, for those who play all profiles
		replayCorpus(t)
	}
	began := time.Now()
	s := &series{binary: this(t), job: job{Seed: number(t, "HOLDFAST_SEED", uint64(began.UnixMilli())), End: math.MaxUint64, Profile: profile}}
	seed := s.Seed
	s.simulate(t, length(t, "HOLDFAST_SIMULATE", 10*time.Second))
	took := time.Since(began)
	t.Logf("from seed %d, %d processes, %v\n%v%.1f lock hours per second, %.1f per second of CPU time", seed, processes(t),
		took.Round(time.Millisecond), s.total, s.total.LockTime.Hours()/took.Seconds(), s.total.LockTime.Hours()/s.total.CPU.Seconds())
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
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatalf("testdata/seeds: %q: %v", line, err)
		}
		s := &series{binary: this(t), job: job{Seed: seed, End: seed + 1, Profile: profile}}
		s.simulate(t, always)
	}
}

// TestProfilesAreClean runs the mixes by which defects are found on the real code: they must find
// nothing there. HOLDFAST_PROFILES is how long each of them runs.
func TestProfilesAreClean(t *testing.T) {
	for _, d := range defects {
		if d.profile == "" {
			continue
		}
		t.Run(d.profile, func(t *testing.T) {
			s := &series{binary: this(t), job: job{Seed: 1, End: math.MaxUint64, Profile: d.profile}}
			if d.profile == "slow functions" { // time that stands still for all others goes on there: leases end early
				s.Finds = d.finds
			}
			s.simulate(t, length(t, "HOLDFAST_PROFILES", 2*time.Second))
			t.Logf("%v", s.total)
		})
	}
}

// TestSchedules plays HOLDFAST_SCHEDULES schedules of HOLDFAST_PROFILE (default brief), from
// HOLDFAST_SEED (default 1) on, in HOLDFAST_PROCESSES processes (default: one for each CPU). It says
// each minute what it has played, and at the end, also if it is interrupted.
func TestSchedules(t *testing.T) {
	count := number(t, "HOLDFAST_SCHEDULES", 0)
	if count == 0 {
		t.Skip("no HOLDFAST_SCHEDULES")
	}
	s := &series{binary: this(t), says: true, job: job{Profile: cmp.Or(os.Getenv("HOLDFAST_PROFILE"), "brief"), Every: 2 * time.Second}}
	s.Seed, s.Until = number(t, "HOLDFAST_SEED", 1), time.Now().Add(always)
	s.End = s.Seed + count
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		s.play(ctx, processes(t))
	}()
	for minute := time.NewTicker(time.Minute); ; {
		select {
		case <-minute.C:
			s.mu.Lock()
			t.Logf("%v: %s; %d crashes", time.Since(began).Round(time.Second), s.total.Line(), len(s.crashes))
			s.mu.Unlock()
			continue
		case <-done:
		}
		break
	}
	t.Logf("%q, up to seed %d, %d processes, interrupted: %v, %.1f schedules in a second of CPU time\n%v", s.Profile, s.Seed-1, processes(t),
		ctx.Err() != nil, float64(s.total.Schedules)/s.total.CPU.Seconds(), s.total)
	for _, v := range s.total.Broken {
		t.Errorf("%v", v)
	}
	for _, c := range s.crashes {
		t.Errorf("%s", c)
	}
}
