// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/oracle"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// clients is the role of this program's other processes.
const clients = "go"

var roles = map[string]reexec.Role{clients: play}

// worker is one goroutine that wants locks, and uses the client as a program would that wants everything
// of it.
type worker struct {
	*teller
	*job
	number   int
	random   *rand.Rand
	stopping context.Context
	calm     chan struct{} // closed when the storm is over
	gate     *gate

	client *client.Client
	level  oracle.Level
	long   bool // what it takes now it holds for long
	limit  int  // and with whom beside it
}

// closing is what the clients of a process may take to close: each a second, and they are two.
const closing = 2*time.Second + lateness

// play is the life of a process: its workers take locks until it is told to stop.
func play(p *reexec.Parent) error {
	var j job
	if err := p.Job(&j); err != nil {
		return err
	}
	stopping, cancel := context.WithCancel(context.Background())
	defer cancel()
	all := worker{teller: &teller{}, job: &j, stopping: stopping, calm: make(chan struct{}), gate: &gate{}}
	go all.obey(p, cancel)
	known := leaks.Now()
	if j.Defect == defectLeak {
		go func() { select {} }()
	}
	workers := make([]*worker, j.Workers)
	for i := range workers {
		w := all
		w.number, w.random = i+1, rand.New(rand.NewPCG(j.Seed, uint64(i)))
		workers[i] = &w
	}
	closeClients := connect(stopping, &j, workers)
	all.say(message{Ready: true})
	var working sync.WaitGroup
	for _, w := range workers {
		working.Go(w.work)
	}
	working.Wait()
	began := now()
	if closeClients != nil {
		closeClients()
	}
	if took := now().Sub(began); took > closing {
		all.trouble("hang", "", began, "closing the clients took %v", took)
	}
	if err := leaks.Find(known); err != nil {
		all.trouble("leak", "", now(), "%v", err)
	}
	all.say(message{Bye: true})
	return nil
}

// obey does what the harness says, until it says stop.
func (w *worker) obey(p *reexec.Parent, cancel func()) {
	shut := false
	for {
		line, err := p.Hear()
		if err != nil || line == stop {
			cancel()
			if shut {
				w.gate.shut.Unlock()
			}
			return
		}
		switch line {
		case calmDown: // once
			close(w.calm)
		case shutGate:
			w.gate.shut.Lock()
			shut = true
		case openGate:
			w.gate.shut.Unlock()
			shut = false
		case tellFigures:
			w.say(message{Figures: ownFigures(w.gate)})
		}
	}
}

// connect tries until the servers can be reached: a process also starts in the storm. It gives up
// when it is to stop.
func connect(ctx context.Context, j *job, workers []*worker) (done func()) {
	for {
		done, err := startGo(j, workers)
		if err == nil || ctx.Err() != nil {
			return done
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// work takes locks: any one in the storm, and then each in turn.
func (w *worker) work() {
	if w.client == nil { // never connected
		return
	}
	had := map[string]bool{}
	cycled := false
	for i := w.number; ; i++ {
		if w.gate.pass(); w.stopping.Err() != nil {
			return
		}
		lock := w.Locks[w.random.IntN(len(w.Locks))]
		if w.isCalm() {
			lock = w.Locks[i%len(w.Locks)]
		}
		calm := w.isCalm()
		if w.Defect == defectHoard {
			for range 10 {
				go func() { select {} }()
			}
		}
		w.take(lock, func() {
			if calm {
				had[lock] = true
			}
		})
		if !cycled && len(had) == len(w.Locks) {
			cycled = true
			w.say(message{Cycled: w.number})
		}
	}
}

// choose says how many may have a lock beside one another, or oracle.Sharing; 0: nobody may. Only the last
// locks are for crowds.
func (w *worker) choose(lock string) int {
	if w.Quorum || !slices.Contains(w.Locks[4:], lock) || w.chance(0.2) {
		return 0
	}
	return []int{1, 2, 3, oracle.Sharing}[w.random.IntN(4)]
}

func (w *worker) isCalm() bool {
	select {
	case <-w.calm:
		return true
	default:
		return false
	}
}

// some is a random time up to d, most often a short one.
func (w *worker) some(d time.Duration) time.Duration {
	x := w.random.Float64()
	return time.Duration(x * x * x * float64(d))
}

// chance is true with a probability.
func (w *worker) chance(p float64) bool { return w.random.Float64() < p }

// rest pauses a worker for a while, or until it is to stop.
func (w *worker) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.stopping.Done():
	}
}
