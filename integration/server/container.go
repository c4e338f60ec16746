// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// container is a server in a container, by the docker command. It shares the network of this machine,
// so that a server has one address for all. Its directory inside is /NAME, which no other container
// has. It outlives the end of the server, for Restart, until Remove.
type container struct {
	image    string
	name     string
	sentinel bool
	preload  string // an option of docker create
	note     string // directory that tells the janitor of the container
	made     bool   // there is a container
}

func newContainer(f Flavour, sentinel bool) (*container, error) {
	parent, err := watchedDir()
	if err != nil {
		return nil, err
	}
	note, err := os.MkdirTemp(parent, "node-")
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("holdfast-%d-%016x", os.Getpid(), rand.Uint64())
	return &container{image: f.Image, name: name, sentinel: sentinel, note: note}, nil
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

func (c *container) Dir() string { return "/" + c.name }

func (c *container) Preload(name string) { c.preload = "--env=LD_PRELOAD=" + c.Dir() + "/" + name }

// Put makes the container, if there is none, and copies a file into it. That also works where the
// engine cannot mount our files.
func (c *container) Put(name, text string) error {
	if !c.made {
		if err := c.create(); err != nil {
			return err
		}
		c.made = true
	}
	dir, err := os.MkdirTemp(c.note, "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		return err
	}
	_, err = docker(context.Background(), "cp", dir+"/.", c.name+":"+c.Dir())
	return err
}

// commands of images, by their names.
var commands sync.Map

// create makes the container, after it has told the janitor how to remove it. The command of the image
// is run without its entry point, which would change to a user of the image.
func (c *container) create() error {
	if err := os.WriteFile(filepath.Join(c.note, "container"), []byte(c.name), 0o600); err != nil {
		return err
	}
	ask, _ := commands.LoadOrStore(c.image, sync.OnceValues(func() (string, error) {
		return docker(context.Background(), "image", "inspect", "--format={{index .Config.Cmd 0}}", c.image)
	}))
	binary, err := ask.(func() (string, error))()
	if err != nil {
		return err
	}
	args := []string{"create", "--name=" + c.name, "--network=host", "--user=0:0", "--entrypoint=" + binary}
	if c.preload != "" {
		args = append(args, c.preload)
	}
	args = append(args, c.image, c.Dir()+"/redis.conf")
	if c.sentinel {
		args = append(args, "--sentinel")
	}
	_, err = docker(context.Background(), args...)
	return err
}

func (c *container) Start() error {
	_, err := docker(context.Background(), "start", c.name)
	return err
}

func (c *container) Signal(sig syscall.Signal) error {
	_, err := docker(context.Background(), "kill", "--signal="+strconv.Itoa(int(sig)), c.name)
	return err
}

func (c *container) Ended() bool {
	running, err := docker(context.Background(), "inspect", "--format={{.State.Running}}", c.name)
	return err != nil || running != "true"
}

func (c *container) Wait(ctx context.Context) error {
	_, err := docker(ctx, "wait", c.name)
	return err
}

func (c *container) Log() string {
	text, err := docker(context.Background(), "logs", c.name)
	if err != nil {
		return "no log: " + err.Error()
	}
	return text
}

func (c *container) Remove() error {
	if c.made {
		if _, err := docker(context.Background(), "rm", "--force", "--volumes", c.name); err != nil {
			return err
		}
		c.made = false
	}
	return os.RemoveAll(c.note)
}
