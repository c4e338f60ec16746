package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// A process is a worker as its parent sees it.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	to    *json.Encoder
	ended chan struct{} // closed when it is gone
	err   error         // how it ended, then
}

// start runs this program once more, as a worker with a job. Its events go to
// the channel, and at last one that it exited, for as long as ctx lasts.
func start(ctx context.Context, j job, events chan<- event) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(program, workerArgument), ended: make(chan struct{})}
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.to = stdin, json.NewEncoder(stdin)
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go p.listen(ctx, json.NewDecoder(stdout), events)
	if err := p.to.Encode(j); err != nil {
		p.kill()
		return nil, fmt.Errorf("give a worker its job: %w", err)
	}
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
	p.err = p.cmd.Wait()
	close(p.ended)
	select {
	case events <- event{Kind: exited, from: p}:
	case <-ctx.Done():
	}
}

// tell gives it a command. One that it cannot be given is no error: the process
// is gone, and its end tells why.
func (p *process) tell(c command) { _ = p.to.Encode(c) }

// pause stops it in the middle of whatever it does.
func (p *process) pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// resume lets it go on as if nothing had happened.
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// kill ends it, paused or not, and blocks until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if it is gone
	<-p.ended
	p.stdin.Close()
}

// wasKilled tells of a process that is gone whether SIGKILL ended it.
func (p *process) wasKilled() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
