// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// contained is a server in a room. Its directory there outlives the end of the server, for Restart. No other
// server of these tests has one of that name.
type contained struct {
	room     *room
	dir      string
	sentinel bool
	env      string
	life     atomic.Pointer[life] // the last one; nil: it was never started
}

// life is a server from its start to its end.
type life struct {
	pid  chan string // has room for one
	id   string
	done chan struct{}
}

func newContained(f Flavour, sentinel bool) (*contained, error) {
	r, err := roomOf(f.Image)
	if err != nil {
		return nil, err
	}
	return &contained{room: r, dir: fmt.Sprintf("/%s/%d", r.name, r.servers.Add(1)), sentinel: sentinel}, nil
}

// docker runs the docker command and returns what it printed.
func docker(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return text, fmt.Errorf("docker %s: %w: %s", args[0], err, text)
	}
	return text, nil
}

func (c *contained) Dir() string { return c.dir }

func (c *contained) Preload(name string) { c.env = "LD_PRELOAD=" + c.dir + "/" + name + " " }

// Put writes not in its place: a server that reads it now must not find half of it.
func (c *contained) Put(name, text string) error {
	path := c.dir + "/" + name
	return c.room.do("mkdir -p " + c.dir + " && base64 -d >" + path + ".new <<'END' && mv " + path + ".new " + path + "\n" +
		base64.StdEncoding.EncodeToString([]byte(text)) + "\nEND")
}

// Start runs the server with a process group of its own, as that of a local one is, in a shell that says when it
// has ended.
func (c *contained) Start() error {
	args := c.dir + "/redis.conf"
	if c.sentinel {
		args += " --sentinel"
	}
	l := &life{pid: make(chan string, 1), done: make(chan struct{})}
	c.room.lives.Store(c.dir, l)
	if err := c.room.do("(" + c.env + "setsid " + c.room.binary + " " + args + " </dev/null >>" + c.dir + "/log 2>&1 & " +
		"echo began " + c.dir + " $!; wait $!; echo ended " + c.dir + ") &"); err != nil {
		return err
	}
	select {
	case l.id = <-l.pid:
		c.life.Store(l)
		return nil
	case <-c.room.over:
		return c.room.why()
	}
}

func (c *contained) Signal(sig syscall.Signal) error {
	l := c.life.Load()
	if l == nil || ended(c) {
		return os.ErrProcessDone
	}
	if sig == syscall.SIGKILL { // with its group: a child that saves the data would still write
		return c.room.do("kill -9 -" + l.id + " || kill -9 " + l.id + " || true")
	}
	return c.room.do("kill -" + strconv.Itoa(int(sig)) + " " + l.id)
}

func (c *contained) Done() <-chan struct{} {
	if l := c.life.Load(); l != nil {
		return l.done
	}
	return never
}

func (c *contained) Log() string {
	text, err := docker(context.Background(), "exec", c.room.name, "cat", c.dir+"/log")
	if err != nil {
		return "no log: " + err.Error()
	}
	return text
}

func (c *contained) Delete() error { return c.room.do("rm -rf " + c.dir) }
