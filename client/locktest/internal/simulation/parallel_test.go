package simulation_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
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
	Seed    uint64 // the first; then every Step-th
	Step    uint64
	Count   int // how many; 0: until the time is over
	Until   time.Time
	Profile string
	Source  string        // a file with the library's source; "": the real one
	First   bool          // stop at the first violation
	Finds   string        // count only violations that match this regular expression; "": all
	Every   time.Duration // how often it reports; 0: after each schedule
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
	total, reported := simulation.NewReport(), time.Now()
	report := func() {
		out, err := json.Marshal(total)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s%s\n", resultMark, out)
		total, reported = simulation.NewReport(), time.Now()
	}
	defer report()
	for seed, n := j.Seed, 0; time.Now().Before(j.Until) && (j.Count == 0 || n < j.Count); seed, n = seed+j.Step, n+1 {
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
			return !matching(j.Finds, fmt.Sprintf("invariant %d: %s", v.Invariant, v.Text))
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

// simulate runs schedules in several processes until the time is over, or the first violation.
func simulate(binary string, j job, processes int) (*simulation.Report, []string) {
	var mu sync.Mutex
	total, crashes := simulation.NewReport(), []string(nil)
	var running sync.WaitGroup
	var commands []*exec.Cmd
	for i := range processes {
		mine := j
		mine.Seed, mine.Step = j.Seed+uint64(i), uint64(processes)
		running.Go(func() {
			for time.Now().Before(mine.Until) {
				seed, crash := work(binary, mine, func(c *exec.Cmd) {
					mu.Lock()
					commands = append(commands, c)
					mu.Unlock()
				}, func(r *simulation.Report) {
					mu.Lock()
					defer mu.Unlock()
					total.Add(r)
					if j.First && len(total.Broken) > 0 {
						for _, c := range commands {
							_ = c.Process.Kill()
						}
					}
				})
				mu.Lock()
				done := j.First && len(total.Broken) > 0
				if crash != "" && !done {
					crashes = append(crashes, crash)
				}
				done = done || crash == "" || j.First && crash != ""
				mu.Unlock()
				if done {
					return
				}
				mine.Seed = seed + mine.Step
			}
		})
	}
	running.Wait()
	return total, crashes
}

// work runs one process. It returns the seed that it was at, and what it said if it crashed.
func work(binary string, j job, started func(*exec.Cmd), result func(*simulation.Report)) (seed uint64, crash string) {
	text, err := json.Marshal(j)
	if err != nil {
		return 0, err.Error()
	}
	cmd := exec.Command(binary, "-test.run", "^TestWorker$", "-test.timeout", "0")
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
	started(cmd)
	lines := bufio.NewReader(out)
	var last []string
	for {
		line, err := lines.ReadString('\n')
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
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	used := simulation.NewReport()
	used.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	result(used)
	if err != nil {
		crash = fmt.Sprintf("seed %d: %v\n%s\n%s", seed, err, strings.Join(last, "\n"), stderr.String())
	}
	return seed, crash
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
