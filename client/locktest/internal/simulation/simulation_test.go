package simulation_test

import (
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/simulation"
)

// TestReplay runs the schedule of HOLDFAST_SEED, up to HOLDFAST_TIMES times (default 10) until it
// breaks an invariant: the same seed is the same scenario, and where two things happen at one
// instant the runtime chooses.
func TestReplay(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("HOLDFAST_SEED"), 10, 64)
	if err != nil {
		t.Skip("no HOLDFAST_SEED")
	}
	times := 10
	if text := os.Getenv("HOLDFAST_TIMES"); text != "" {
		if times, err = strconv.Atoi(text); err != nil {
			t.Fatalf("HOLDFAST_TIMES: %v", err)
		}
	}
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
		t.Logf("seed %d in %v, digest %x\n%v", seed, time.Since(began), r.Digest, r)
		for _, v := range r.Broken {
			t.Errorf("%v", v)
		}
	}
}

// TestSimulation runs schedules for HOLDFAST_SIMULATE (default 10s), from HOLDFAST_SEED on
// (default: by the time).
func TestSimulation(t *testing.T) {
	length := length(t, "HOLDFAST_SIMULATE", 10*time.Second)
	seed := number(t, "HOLDFAST_SEED", uint64(time.Now().UnixMilli()))
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("HOLDFAST_PROFILE") == "" { // once is enough, for those who play all profiles
		replayCorpus(t, binary)
	}
	began := time.Now()
	j := job{Seed: seed, Until: began.Add(length), Profile: os.Getenv("HOLDFAST_PROFILE")}
	r, crashes := simulate(binary, j, runtime.NumCPU())
	took := time.Since(began)
	t.Logf("from seed %d, %d processes, %v\n%v%.1f lock hours per second, %.1f per second of CPU time: %.0f in a minute of this many free cores", seed,
		runtime.NumCPU(), took.Round(time.Millisecond), r, r.LockTime.Hours()/took.Seconds(), r.LockTime.Hours()/r.CPU.Seconds(),
		60*float64(runtime.NumCPU())*r.LockTime.Hours()/r.CPU.Seconds())
	for _, v := range r.Broken {
		t.Errorf("%v", v)
	}
	for _, c := range crashes {
		t.Errorf("%s", c)
	}
	if r.Schedules == 0 {
		t.Error("no schedule was run")
	}
}

// replayCorpus runs the seeds that found something once. A change of the generator gives a seed
// another meaning.
func replayCorpus(t *testing.T, binary string) {
	t.Helper()
	text, err := os.ReadFile("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		seed, err := strconv.ParseUint(words[0], 10, 64)
		if err != nil {
			t.Fatalf("testdata/seeds: %q: %v", line, err)
		}
		r, crashes := simulate(binary, job{Seed: seed, Step: 1, Count: 1, Until: time.Now().Add(time.Hour), Profile: strings.Join(words[1:], " ")}, 1)
		for _, v := range r.Broken {
			t.Errorf("corpus: %v", v)
		}
		for _, c := range crashes {
			t.Errorf("corpus: %s", c)
		}
	}
}
