// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
)

// crew is the client processes of a round. Each has a place, and the one in it can be replaced.
type crew struct {
	history *history
	dir     string // for what the processes print when they end badly
	job     job    // what all have in common
	places  []*place

	mu     sync.Mutex
	killed map[string]bool
	count  int
}

// place is one client process after the other.
type place struct {
	wires *wires

	mu   sync.Mutex // held while the process is paused or replaced
	one  *reexec.Process
	name string // under crew.mu
	hear *listener
	over chan struct{} // closed when it is gone and all that it said is heard
	bad  error         // how it ended, when over is closed
}

// processes is how many places there are.
const processes = 5

// patient is how long a process may take to end when it is told to.
const patient = 30 * time.Second

func newCrew(h *history, dir string, d *server.Deployment, j job) (*crew, error) {
	c := &crew{history: h, dir: dir, job: j, killed: map[string]bool{}}
	for range processes {
		w, err := newWires(d)
		if err != nil {
			return c, err
		}
		p := &place{wires: w}
		c.places = append(c.places, p)
		if err := c.start(p); err != nil {
			return c, err
		}
	}
	for _, p := range c.places {
		select {
		case <-p.hear.ready:
		case <-time.After(patient):
			return c, fmt.Errorf("%s does not connect", p.name)
		}
	}
	return c, nil
}

// start puts a new process into a place.
func (c *crew) start(p *place) error {
	c.mu.Lock()
	c.count++
	p.name = fmt.Sprintf("%s%d", clients, c.count)
	seed := c.job.Seed<<16 + uint64(c.count)
	c.mu.Unlock()
	j := c.job
	j.Name, j.Seed, j.Proxies = p.name, seed, p.wires.addrs()
	stderr, err := os.Create(filepath.Join(c.dir, p.name+".stderr"))
	if err != nil {
		return err
	}
	defer stderr.Close() // the process has its own
	one, err := reexec.Start(clients, j, func(cmd *exec.Cmd) { cmd.Stderr = stderr })
	if err != nil {
		return err
	}
	hear := &listener{process: p.name, history: c.history, calls: map[int64]*call{},
		holds: map[int64]*hold{}, ready: make(chan struct{}), figures: make(chan figures, 1)}
	over := make(chan struct{})
	p.one, p.hear, p.over, p.bad = one, hear, over, nil
	go func() {
		defer close(over)
		p.bad = errors.Join(hear.listen(one.Out), one.Wait())
		if info, err := os.Stat(stderr.Name()); err == nil && info.Size() == 0 {
			_ = os.Remove(stderr.Name()) // an empty one is no harm
		}
	}()
	return nil
}

// pause stops the process of a place for a while.
func (c *crew) pause(p *place, rest func()) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.one.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	rest()
	return p.one.Signal(syscall.SIGCONT)
}

// replace kills the process of a place and puts another one there.
func (c *crew) replace(p *place) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.mu.Lock()
	c.killed[p.name] = true
	c.mu.Unlock()
	if err := p.one.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.over
	return c.start(p)
}

// named is who is in a place now.
func (c *crew) named(p *place) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.name
}

// say tells all processes.
func (c *crew) say(line string) error {
	var errs []error
	for _, p := range c.places {
		errs = append(errs, p.one.Say(line))
	}
	return errors.Join(errs...)
}

// workers are the names of all workers of the moment.
func (c *crew) workers() (names []string) {
	for _, p := range c.places {
		for i := range c.job.Workers {
			names = append(names, fmt.Sprintf("%s.%d", p.name, i+1))
		}
	}
	return names
}

// stop ends all processes in good order. One that does not end is a violation: its goroutines are
// in its file.
func (c *crew) stop() {
	for _, p := range c.places {
		_ = p.one.Say(stop) // one that is gone is found below
	}
	for _, p := range c.places {
		select {
		case <-p.over:
			if p.bad != nil || !p.hear.bye {
				c.history.trouble(wrong("died", "", now(), "%s: %v; see %s.stderr", p.name, p.bad, p.name))
			}
			continue
		case <-time.After(patient):
		}
		c.history.trouble(wrong("hang", "", now(), "%s does not end; its goroutines are in %[1]s.stderr", p.name))
		_ = p.one.Signal(syscall.SIGQUIT)
		select {
		case <-p.over:
		case <-time.After(soon):
			_ = p.one.Signal(syscall.SIGKILL)
			<-p.over
		}
	}
}

// close ends what is left. It is for a round that could not go on, too.
func (c *crew) close() error {
	var errs []error
	for _, p := range c.places {
		if p.one != nil {
			_ = p.one.Signal(syscall.SIGKILL)
			<-p.over
		}
		errs = append(errs, p.wires.all.close())
	}
	return errors.Join(errs...)
}
