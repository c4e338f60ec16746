package container

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/ory/dockertest/v3/docker"

	"github.com/holdfast-go/holdfast/integration/server/internal/machine"
)

// container is a server in a container. Its directory inside is /holdfast-x,
// x at random, which no other container has. It outlives the end of the server,
// for restart, until remove.
type container struct {
	engine   *engine
	image    string
	binary   string
	name     string
	port     int
	sentinel bool
	env      []string
	note     string // directory that tells the janitor of the container
	made     bool   // there is a container
}

func newContainer(f machine.Flavour, port int, sentinel bool) (machine.Process, error) {
	e, err := connect()
	if err != nil {
		return nil, err
	}
	binary, err := e.binary(f.Image)
	if err != nil {
		return nil, err
	}
	parent, err := machine.WatchedDir()
	if err != nil {
		return nil, err
	}
	note, err := os.MkdirTemp(parent, "node-")
	if err != nil {
		return nil, err
	}
	return &container{
		engine: e, image: f.Image, binary: binary, port: port, sentinel: sentinel, note: note,
		name: fmt.Sprintf("holdfast-%016x", rand.Uint64()),
	}, nil
}

func (c *container) Place() (bind, dir string) {
	if c.engine.hostNetwork {
		return "127.0.0.1", "/" + c.name
	}
	return "0.0.0.0", "/" + c.name
}

func (c *container) Preload(name string) {
	_, dir := c.Place()
	c.env = []string{"LD_PRELOAD=" + dir + "/" + name}
}

// start makes the container, puts the configuration into it and starts it.
func (c *container) Start(conf string) error {
	if err := c.Put("redis.conf", conf); err != nil {
		return err
	}
	return c.Restart()
}

// put makes the container, if there is none, and puts a file into it. That also
// works where the engine cannot mount our files.
func (c *container) Put(name, text string) error {
	if !c.made {
		if err := c.create(); err != nil {
			return err
		}
		c.made = true
	}
	_, dir := c.Place()
	file, err := archive(strings.TrimPrefix(dir, "/"), name, text)
	if err != nil {
		return err
	}
	if err := c.engine.client.UploadToContainer(c.name, docker.UploadToContainerOptions{Path: "/", InputStream: file}); err != nil {
		return fmt.Errorf("put %s into container of %s: %w", name, c.image, err)
	}
	return nil
}

// create makes the container. The binary is run without the image's entry
// point, which would change to a user of the image.
func (c *container) create() error {
	if err := c.noteDown(); err != nil {
		return err
	}
	_, dir := c.Place()
	command := []string{dir + "/redis.conf"}
	if c.sentinel {
		command = append(command, "--sentinel")
	}
	host := &docker.HostConfig{NetworkMode: "host"}
	config := &docker.Config{Image: c.image, Entrypoint: []string{c.binary}, Cmd: command, User: "0:0", Env: c.env, Labels: labels()}
	if !c.engine.hostNetwork {
		port := docker.Port(strconv.Itoa(c.port) + "/tcp")
		host = &docker.HostConfig{PortBindings: map[docker.Port][]docker.PortBinding{
			port: {{HostIP: "127.0.0.1", HostPort: strconv.Itoa(c.port)}},
		}}
		config.ExposedPorts = map[docker.Port]struct{}{port: {}}
	}
	if _, err := c.engine.client.CreateContainer(docker.CreateContainerOptions{Name: c.name, Config: config, HostConfig: host}); err != nil {
		return fmt.Errorf("create container of %s: %w", c.image, err)
	}
	return nil
}

// noteDown tells the janitor how to remove the container, before there is one.
// Without a program to do it with, the next process that uses containers does.
func (c *container) noteDown() error {
	program, err := exec.LookPath("docker")
	if err != nil {
		return nil
	}
	return os.WriteFile(filepath.Join(c.note, "container"), []byte(program+" "+c.name+"\n"), 0o600)
}

// archive returns a tar of a directory with one file.
func archive(dir, name, text string) (*bytes.Buffer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o777}); err != nil {
		return nil, err
	}
	if err := w.WriteHeader(&tar.Header{Name: dir + "/" + name, Mode: 0o666, Size: int64(len(text))}); err != nil {
		return nil, err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return nil, err
	}
	return &b, w.Close()
}

func (c *container) Restart() error {
	err := c.engine.client.StartContainer(c.name, nil)
	if err != nil && strings.Contains(err.Error(), "port is already allocated") {
		return machine.ErrPortTaken
	}
	return err
}

// Signals of the engine are those of Linux, whatever this system calls them.
var signals = map[syscall.Signal]docker.Signal{
	syscall.SIGKILL: docker.SIGKILL,
	syscall.SIGTERM: docker.SIGTERM,
	syscall.SIGSTOP: docker.SIGSTOP,
	syscall.SIGCONT: docker.SIGCONT,
}

func (c *container) Signal(sig syscall.Signal) error {
	return c.engine.client.KillContainer(docker.KillContainerOptions{ID: c.name, Signal: signals[sig]})
}

func (c *container) Ended() bool {
	about, err := c.engine.client.InspectContainer(c.name)
	return err != nil || !about.State.Running
}

func (c *container) Wait(ctx context.Context) error {
	_, err := c.engine.client.WaitContainerWithContext(c.name, ctx)
	if err != nil {
		return fmt.Errorf("container %s does not end: %w", c.name, err)
	}
	return nil
}

func (c *container) Log() string {
	var out bytes.Buffer
	err := c.engine.client.Logs(docker.LogsOptions{
		Container: c.name, OutputStream: &out, ErrorStream: &out, Stdout: true, Stderr: true,
	})
	if err != nil {
		return "no log: " + err.Error()
	}
	return out.String()
}

func (c *container) Remove() error {
	return errors.Join(c.engine.remove(c.name), os.RemoveAll(c.note))
}
