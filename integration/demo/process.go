package main

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"syscall"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// A process is a worker as its parent sees it.
type process struct {
	*reexec.Process
	to  *json.Encoder
	err error // how it ended, once it has said that it exited
}

// start runs this program once more, as a worker with a job. Its events go to
// the channel, and at last one that it exited, for as long as ctx lasts.
func start(ctx context.Context, j job, events chan<- event) (*process, error) {
	child, err := reexec.Start(workerRole, j)
	if err != nil {
		return nil, err
	}
	p := &process{Process: child, to: json.NewEncoder(child.In)}
	go p.listen(ctx, json.NewDecoder(child.Out), events)
	return p, nil
}

func (p *process) listen(ctx context.Context, from *json.Decoder, events chan<- event) {
	for {
		e := event{from: p}
		if from.Decode(&e) != nil {
			break
		}
		select {
		case events <- e:
		case <-ctx.Done():
		}
	}
	p.err = p.Wait()
	select {
	case events <- event{Kind: exited, from: p}:
	case <-ctx.Done():
	}
}

// tell gives it a command. One that it cannot be given is no error: the process
// is gone, and its end tells why.
func (p *process) tell(c command) { _ = p.to.Encode(c) }

// wasKilled reports of a process that is gone whether SIGKILL ended it.
func (p *process) wasKilled() bool {
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
