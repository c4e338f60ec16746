// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// room is a container, by the docker command, in which this process has all its servers of one image. To make
// a container for each server costs more than the server. Its first process is a shell that reads commands from
// its standard input, and ends with that, however this process ends; and the container with all in it. It
// shares the network of this machine, so that a server has one address for all.
type room struct {
	name, binary string
	said         strings.Builder // what is no event, to be read when over is closed
	servers      atomic.Int64
	lives        sync.Map // by directories of servers: *life

	mu      sync.Mutex // one command at a time
	in      io.Writer
	replies chan string
	over    chan struct{} // closed when the container has ended
}

var rooms sync.Map

// roomOf returns the room of an image, which the first call makes.
func roomOf(image string) (*room, error) {
	open, _ := rooms.LoadOrStore(image, sync.OnceValues(func() (*room, error) { return newRoom(image) }))
	return open.(func() (*room, error))()
}

func newRoom(image string) (*room, error) {
	binary, err := docker(context.Background(), "image", "inspect", "--format={{index .Config.Cmd 0}}", image)
	if err != nil {
		return nil, err
	}
	r := &room{binary: binary, replies: make(chan string), over: make(chan struct{}),
		name: fmt.Sprintf("holdfast-%d-%016x", os.Getpid(), rand.Uint64())}
	cmd := exec.Command("docker", "run", "--rm", "--interactive", "--network=host", "--user=0:0", "--name="+r.name,
		"--tmpfs=/"+r.name+":exec", "--entrypoint=sh", image)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C at the terminal is not for it
	if r.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go r.read(cmd, bufio.NewScanner(out))
	return r, r.do("exec 2>/dev/null") // the engine brings the two outputs in pieces, in no order
}

// read notes what the shell says, until the end of the room.
func (r *room) read(cmd *exec.Cmd, lines *bufio.Scanner) {
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		dir, id, _ := strings.Cut(rest, " ")
		switch word {
		case "status":
			r.replies <- rest
		case "began":
			if l, ok := r.lives.Load(dir); ok {
				l.(*life).pid <- id
			}
		case "ended":
			if l, ok := r.lives.LoadAndDelete(dir); ok {
				close(l.(*life).done)
			}
		default:
			r.said.WriteString(lines.Text() + "\n")
		}
	}
	_ = cmd.Wait() // why shows in what it said
	close(r.over)
	r.lives.Range(func(_, l any) bool {
		close(l.(*life).done)
		return true
	})
}

func (r *room) why() error { return errors.New("the container has ended: " + r.said.String()) }

// do has the shell run a command, and blocks until that is done.
func (r *room) do(command string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := io.WriteString(r.in, command+"\necho status $?\n"); err != nil {
		<-r.over
		return r.why()
	}
	select {
	case status := <-r.replies:
		if status != "0" {
			return fmt.Errorf("%s: exit status %s", command, status)
		}
		return nil
	case <-r.over:
		return r.why()
	}
}
