package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/oracle"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

// The roles of this program's other processes.
const (
	roleGo  = "go"  // clients of the Go package
	roleRaw = "raw" // raw callers
)

var roles = map[string]reexec.Role{
	roleGo:  func(p *reexec.Parent) error { return play(p, startGo) },
	roleRaw: func(p *reexec.Parent) error { return play(p, startRaw) },
}

// worker is one goroutine that wants locks.
type worker struct {
	*teller
	*job
	number   int
	random   *rand.Rand
	register *registerClient
	stopping context.Context
	calm     <-chan struct{} // closed when the storm is over
	gate     *gate
	turn     func(lock string, got func())
}

// starter connects the clients of a process and gives each worker its turn. The func that it
// returns closes the clients.
type starter func(j *job, workers []*worker) (func(), error)

// closing is what the clients of a process may take to close: each a second, and they are two.
const closing = 2*time.Second + lateness

// play is the life of a process: its workers take locks until it is told to stop.
func play(p *reexec.Parent, start starter) error {
	var j job
	if err := p.Job(&j); err != nil {
		return err
	}
	stopping, cancel := context.WithCancel(context.Background())
	defer cancel()
	calm, gate, t := make(chan struct{}), newGate(), &teller{}
	go func() {
		for {
			line, err := p.Hear()
			if err != nil || line == stop {
				cancel()
				return
			}
			switch line {
			case calmDown: // once
				close(calm)
			case shutGate:
				gate.shut()
			case openGate:
				gate.reopen()
			case tellFigures:
				f := ownFigures(gate)
				t.say(message{What: sayFigures, Figures: &f})
			}
		}
	}()
	left := goleak.IgnoreCurrent()
	if j.Defect == defectLeak {
		go func() { select {} }()
	}
	workers := make([]*worker, j.Workers)
	for i := range workers {
		r, err := dialRegister(j.Register)
		if err != nil {
			return err
		}
		workers[i] = &worker{teller: t, job: &j, number: i + 1,
			random: rand.New(rand.NewPCG(j.Seed, uint64(i))), register: r,
			stopping: stopping, calm: calm, gate: gate}
	}
	closeClients, err := connect(stopping, &j, workers, start)
	if err != nil {
		return err
	}
	t.say(message{What: sayReady})
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(w.work)
	}
	all.Wait()
	began := now()
	if closeClients != nil {
		closeClients()
	}
	if took := now().Sub(began); took > closing {
		t.say(message{What: sayTrouble, Call: "hang", At: began,
			Outcome: "closing the clients took " + took.String()})
	}
	for _, w := range workers {
		w.register.close()
	}
	if err := goleak.Find(append(leaks.Late(), left)...); err != nil {
		t.say(message{What: sayTrouble, Call: "leak", At: now(), Outcome: err.Error()})
	}
	t.say(message{What: sayBye})
	return nil
}

// connect tries until the servers can be reached: a process also starts in the storm. It gives up
// when it is to stop.
func connect(ctx context.Context, j *job, workers []*worker, start starter) (func(), error) {
	for {
		done, err := start(j, workers)
		if err == nil || ctx.Err() != nil {
			return done, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// work takes locks: any one in the storm, and then each in turn.
func (w *worker) work() {
	if w.turn == nil { // never connected
		return
	}
	had := map[string]bool{}
	cycled := false
	for i := w.number; ; i++ {
		if w.gate.pass(w.stopping); w.stopping.Err() != nil {
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
		w.turn(lock, func() { had[lock] = had[lock] || calm })
		if len(had) < len(w.Locks) || cycled {
			continue
		}
		cycled = true
		for _, l := range w.Locks {
			cycled = cycled && had[l]
		}
		if cycled {
			w.say(message{What: sayCycled, Worker: w.number})
		}
	}
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

// called tells of a call from its beginning to its end. It begins when that is told: to tell takes
// seconds, if nobody reads at a busy machine.
func (w *worker) called(verb, lock string, level oracle.Level, limit time.Duration,
	f func() (outcome string, token int64)) (id int64, start stamp) {
	id = w.next()
	w.say(message{What: sayCall, ID: id, Worker: w.number, At: now(), Call: verb, Lock: lock,
		Level: level, Limit: limit})
	start = now()
	outcome, token := f()
	w.say(message{What: sayReturn, ID: id, At: now(), Start: start, Outcome: outcome, Token: token})
	return id, start
}
