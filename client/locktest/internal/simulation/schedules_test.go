package simulation_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/simulation"
)

// TestSchedules plays HOLDFAST_SCHEDULES schedules of HOLDFAST_PROFILE (default brief), from
// HOLDFAST_SEED (default 1) on, in HOLDFAST_PROCESSES processes (default: one for each CPU). It says
// each minute what it has played, and at the end, also if it is interrupted. A violation is said at
// once.
func TestSchedules(t *testing.T) {
	count := number(t, "HOLDFAST_SCHEDULES", 0)
	if count == 0 {
		t.Skip("no HOLDFAST_SCHEDULES")
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name, named := os.LookupEnv("HOLDFAST_PROFILE")
	if !named {
		name = "brief"
	}
	s := &series{binary: binary, profile: name, total: simulation.NewReport()}
	s.next = number(t, "HOLDFAST_SEED", 1)
	s.end = s.next + count
	s.play(t, processes(t))
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

// series is many schedules, of which each process takes some at a time.
type series struct {
	binary, profile string

	mu      sync.Mutex
	next    uint64 // the first seed that nobody has taken
	end     uint64
	total   *simulation.Report
	crashes []string
	running map[*exec.Cmd]bool
	stopped bool

	measured int // schedules of processes that have ended: it is known what these cost
}

const (
	share     = 1000 // schedules that a process plays before the next one takes its place
	histories = 20   // of violations that are kept
)

func (s *series) play(t *testing.T, processes int) {
	began, first := time.Now(), s.next
	s.running = map[*exec.Cmd]bool{}
	say := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		took := time.Since(began)
		text := fmt.Sprintf("%v: %s; %d crashes; %.1f schedules in a second", took.Round(time.Second),
			s.total.Line(), len(s.crashes), float64(s.total.Schedules)/took.Seconds())
		if s.measured > 0 {
			text += fmt.Sprintf(", %.1f in a second of CPU time", float64(s.measured)/s.total.CPU.Seconds())
		}
		t.Log(text)
	}
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	var talking, playing sync.WaitGroup
	talking.Go(func() {
		minutes := time.NewTicker(time.Minute)
		defer minutes.Stop()
		for {
			select {
			case <-minutes.C:
				say()
			case <-signals:
				s.stop()
			case <-done:
				return
			}
		}
	})
	for range processes {
		playing.Go(func() {
			for s.part() {
			}
		})
	}
	playing.Wait()
	close(done)
	talking.Wait()
	say()
	if s.stopped {
		t.Logf("interrupted")
	}
	t.Logf("%q, seeds %d to %d, %d processes\n%v", s.profile, first, s.next-1, processes, s.total)
}

// part plays some schedules in a process. It reports whether there are more.
func (s *series) part() bool {
	s.mu.Lock()
	if s.stopped || s.next >= s.end {
		s.mu.Unlock()
		return false
	}
	from, to := s.next, min(s.next+share, s.end)
	s.next = to
	s.mu.Unlock()
	for from < to {
		j := job{Seed: from, Step: 1, Count: int(to - from), Profile: s.profile, Every: 2 * time.Second}
		j.Until = time.Now().Add(1000 * time.Hour)
		played := 0
		at, crash := work(s.binary, j, s.started, func(r *simulation.Report) { played += r.Schedules; s.add(r) })
		s.mu.Lock()
		s.measured += played
		if s.stopped {
			s.mu.Unlock()
			return false
		}
		if crash != "" {
			s.crashes = append(s.crashes, crash)
		}
		s.mu.Unlock()
		if crash == "" {
			break
		}
		from = max(at, from) + 1
	}
	return true
}

func (s *series) started(c *exec.Cmd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[c] = true
	if s.stopped {
		_ = c.Process.Kill()
	}
}

func (s *series) add(r *simulation.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Broken = r.Broken[:min(len(r.Broken), max(0, histories-len(s.total.Broken)))]
	for _, v := range r.Broken {
		os.Stdout.WriteString(v.String() + "\n") // at once: who is ended later has said it
	}
	s.total.Add(r)
}

// stop ends the processes. What they have not reported is not counted.
func (s *series) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for c := range s.running {
		_ = c.Process.Kill()
	}
}
