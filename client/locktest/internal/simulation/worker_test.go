package simulation_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/simulation"
)

// Schedules run in processes of their own, one for each CPU: the source of randomness is the
// process's, and with GOMAXPROCS 1 the same seed is nearly always the same trace. A process that
// panics or hangs ends only itself, and the seed that it was at is known.

// job is what a process is to do.
type job struct {
	Seed, End uint64 // the first, and the one behind the last
	Until     time.Time
	Profile   string
	Source    string        // a file with the library's source; "": the real one
	First     bool          // stop at the first violation
	Finds     string        // count only violations that match this regular expression
	Every     time.Duration // how often it reports; 0: after each schedule
}

const (
	workerVariable = "HOLDFAST_SIMULATE_WORKER"
	resultMark     = "result: "
	seedMark       = "seed: "
	watchdog       = 120 * time.Second // of real time, for one schedule
)

// TestWorker is such a process.
func TestWorker(t *testing.T) {
	text := os.Getenv(workerVariable)
	if text == "" {
		t.Skip("started by the other tests")
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		t.Fatal(err)
	}
	opt := simulation.Options{Profile: j.Profile}
	if j.Source != "" {
		source, err := os.ReadFile(j.Source)
		if err != nil {
			t.Fatal(err)
		}
		opt.Source = string(source)
	}
	total, reported, finds := simulation.NewReport(), time.Now(), regexp.MustCompile(j.Finds)
	report := func() {
		out, err := json.Marshal(total)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", resultMark, out)
		total, reported = simulation.NewReport(), time.Now()
	}
	defer report()
	for seed := j.Seed; seed < j.End && time.Now().Before(j.Until); seed++ {
		fmt.Printf("%s%d\n", seedMark, seed)
		dog := time.AfterFunc(watchdog, func() {
			report()
			stacks := make([]byte, 1<<20)
			fmt.Fprintf(os.Stderr, "time stands still in seed %d\n%s\n", seed, stacks[:runtime.Stack(stacks, true)])
			os.Exit(2)
		})
		r := simulation.Run(t, seed, opt)
		dog.Stop()
		r.Broken = slices.DeleteFunc(r.Broken, func(v simulation.Violation) bool {
			return !finds.MatchString(fmt.Sprintf("invariant %d: %s", v.Invariant, v.Text))
		})
		total.Add(r)
		if len(r.Broken) > 0 || time.Since(reported) >= j.Every {
			report()
		}
		if j.First && len(r.Broken) > 0 {
			return
		}
	}
}

// work runs one process. It returns the seed that it was at, and what it said if it crashed.
func work(ctx context.Context, binary string, j job, result func(*simulation.Report)) (seed uint64, crash string) {
	text, err := json.Marshal(j)
	if err != nil {
		return 0, err.Error()
	}
	cmd := exec.CommandContext(ctx, binary, "-test.run", "^TestWorker$", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), workerVariable+"="+string(text), "GOMAXPROCS=1", "GOGC=400")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return 0, err.Error()
	}
	lines := bufio.NewReader(out)
	var last []string
	for err == nil {
		var line string
		line, err = lines.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, seedMark):
			seed, _ = strconv.ParseUint(line[len(seedMark):], 10, 64)
		case strings.HasPrefix(line, resultMark):
			r := simulation.NewReport()
			if json.Unmarshal([]byte(line[len(resultMark):]), r) == nil {
				result(r)
			}
		case len(last) < 300:
			last = append(last, line)
		}
	}
	err = cmd.Wait()
	used := simulation.NewReport()
	used.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	result(used)
	if err != nil && ctx.Err() == nil {
		crash = fmt.Sprintf("seed %d: %v\n%s\n%s", seed, err, strings.Join(last, "\n"), stderr.String())
	}
	return seed, crash
}

const (
	share     = 50 // schedules that a process plays before the next one takes its place
	histories = 20 // of violations that are kept
)

// series is schedules in several processes, of which each takes some at a time.
type series struct {
	job
	binary string
	says   bool // violations are said at once: who is ended later has said them

	mu      sync.Mutex
	total   *simulation.Report
	crashes []string
}

// play plays them until their time is over, none is left, ctx ends, or the first violation.
func (s *series) play(ctx context.Context, processes int) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.total = simulation.NewReport()
	add := func(r *simulation.Report) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, v := range r.Broken {
			if s.says {
				os.Stdout.WriteString(v.String() + "\n")
			}
		}
		r.Broken = r.Broken[:min(len(r.Broken), max(0, histories-len(s.total.Broken)))]
		s.total.Add(r)
		if s.First && len(s.total.Broken) > 0 {
			stop()
		}
	}
	take := func() (j job, ok bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if j = s.job; ctx.Err() != nil || j.Seed >= j.End || !time.Now().Before(j.Until) {
			return j, false
		}
		j.End = min(j.Seed+share, j.End)
		s.Seed = j.End
		return j, true
	}
	var playing sync.WaitGroup
	for range processes {
		playing.Go(func() {
			for j, ok := take(); ok; j, ok = take() {
				for j.Seed < j.End {
					at, crash := work(ctx, s.binary, j, add)
					if crash == "" {
						break
					}
					s.mu.Lock()
					s.crashes = append(s.crashes, crash)
					s.mu.Unlock()
					if s.First {
						return
					}
					j.Seed = max(at, j.Seed) + 1
				}
			}
		})
	}
	playing.Wait()
}

// simulate plays schedules for so long, and what is broken fails t.
func (s *series) simulate(t *testing.T, length time.Duration) {
	t.Helper()
	s.Until = time.Now().Add(length)
	s.play(t.Context(), processes(t))
	for _, v := range s.total.Broken {
		t.Errorf("%v", v)
	}
	for _, c := range s.crashes {
		t.Errorf("%s", c)
	}
	if s.total.Schedules == 0 {
		t.Error("no schedule was run")
	}
}

// this is the binary of the running test.
func this(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// What the environment says, or what is usual.

func number(t *testing.T, variable string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

func length(t *testing.T, variable string, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}

// processes is how many play at once.
func processes(t *testing.T) int {
	t.Helper()
	return int(number(t, "HOLDFAST_PROCESSES", uint64(runtime.NumCPU())))
}
