// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/simulation"
	"github.com/holdfast-go/holdfast/integration/seeded"
)

// Schedules run in processes of their own, one for each CPU: the source of randomness is the
// process's, and with GOMAXPROCS 1 the same seed is nearly always the same trace. A process that
// panics or hangs ends only itself, and the seed that it was at is known.

// job is what a process is to do.
type job struct {
	Seed, End uint64 // the first, and the one behind the last
	Until     time.Time
	Profile   string
	Source    string // a file with the library's source; "": the real one
	First     bool   // stop at the first violation
	Finds     string // count only violations that match this regular expression
}

const (
	workerVariable = "HOLDFAST_SIMULATE_WORKER"
	resultMark     = "result: "

	// For one schedule: of a processor, which few of the longest need a tenth of; and by the clock, on a machine
	// that gives this process next to nothing.
	watchdog     = 60 * time.Second
	lastWatchdog = 20 * time.Minute
)

// TestWorker is such a process. It says what each schedule did.
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
	if path := os.Getenv("HOLDFAST_TRACE"); path != "" {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		opt.Trace = f
	}
	finds := regexp.MustCompile(j.Finds)
	for seed := j.Seed; seed < j.End && time.Now().Before(j.Until); seed++ {
		ended := make(chan struct{})
		go watch(seed, ended)
		r := simulation.Run(t, seed, opt)
		close(ended)
		r.Broken = slices.DeleteFunc(r.Broken, func(v simulation.Violation) bool {
			return !finds.MatchString(fmt.Sprintf("invariant %d: %s", v.Invariant, v.Text))
		})
		out, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", resultMark, out)
		if j.First && len(r.Broken) > 0 {
			return
		}
	}
}

// watch ends the process if its schedule does not end.
func watch(seed uint64, ended <-chan struct{}) {
	began, used := time.Now(), processor()
	for time.Since(began) < lastWatchdog && processor()-used < watchdog {
		select {
		case <-ended:
			return
		case <-time.After(10 * time.Second):
		}
	}
	stacks := make([]byte, 1<<20)
	fmt.Fprintf(os.Stderr, "time stands still in seed %d\n%s\n", seed, stacks[:runtime.Stack(stacks, true)])
	os.Exit(2)
}

// processor is how long this process has had one.
func processor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// work runs one process. It returns the seed behind the last schedule that came to its end, and what
// the process said if it crashed.
func work(ctx context.Context, binary string, j job, result func(*simulation.Report)) (next uint64, crash string) {
	text, err := json.Marshal(j)
	if err != nil {
		return j.Seed, err.Error()
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
		return j.Seed, err.Error()
	}
	next = j.Seed
	lines := bufio.NewReader(out)
	var last []string
	for err == nil {
		var line string
		line, err = lines.ReadString('\n')
		r := simulation.NewReport()
		if said, ok := strings.CutPrefix(line, resultMark); ok && json.Unmarshal([]byte(said), r) == nil {
			result(r)
			next++
		} else if len(last) < 300 {
			last = append(last, line)
		}
	}
	if err = cmd.Wait(); err != nil && ctx.Err() == nil {
		crash = fmt.Sprintf("seed %d: %v\n%s\n%s", next, err, strings.Join(last, ""), stderr.String())
	}
	return next, crash
}

const (
	share     = 50 // schedules that a process plays before the next one takes its place
	histories = 20 // of violations that are kept
)

// series is schedules in several processes, of which each takes some at a time.
type series struct {
	job
	binary string                           // a test binary; "": this one
	broken func(format string, args ...any) // is told of violations and crashes at once; nil: nobody is

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
		r.Broken = r.Broken[:min(len(r.Broken), max(0, histories-len(s.total.Broken)))]
		for _, v := range r.Broken {
			if s.broken != nil {
				s.broken("%v", v)
			}
		}
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
	crashed := func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.crashes = append(s.crashes, text); s.broken != nil {
			s.broken("%s", text)
		}
	}
	var playing sync.WaitGroup
	for range processes {
		playing.Go(func() {
			for j, ok := take(); ok; j, ok = take() {
				for j.Seed < j.End {
					next, crash := work(ctx, cmp.Or(s.binary, os.Args[0]), j, add)
					if crash == "" {
						break
					}
					if crashed(crash); s.First {
						return
					}
					j.Seed = next + 1
				}
			}
		})
	}
	playing.Wait()
}

// simulate plays schedules for so long, or until it is interrupted, and what is broken fails t.
func (s *series) simulate(t *testing.T, length time.Duration) {
	t.Helper()
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s.Until, s.broken = time.Now().Add(length), t.Errorf
	s.play(ctx, processes(t))
	if s.total.Schedules == 0 {
		t.Error("no schedule was run")
	}
}

// processes is how many play at once.
func processes(t *testing.T) int {
	t.Helper()
	return seeded.Setting(t, "HOLDFAST_PROCESSES", runtime.NumCPU(), strconv.Atoi)
}
