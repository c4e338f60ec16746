// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// newNode makes a node with a port and a place to run; it is not started.
func (d *Deployment) newNode(role Role) (*Node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	n := &Node{Addr: address(port), Role: role, port: port}
	if d.Flavour.Runtime == Container {
		n.proc, err = newContained(d.Flavour, role == RoleSentinel)
	} else {
		n.proc, err = newLocal(d.Flavour, role == RoleSentinel)
	}
	return n, err
}

// launch starts a node for the first time and blocks until it answers.
func (n *Node) launch(ctx context.Context) error {
	err := n.proc.Put("redis.conf", n.conf)
	if err == nil {
		err = n.again(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s at %s: %w", n.Role, n.Addr, err)
	}
	return nil
}

// prepare puts the library of the Spec into its place in each server, before
// any of them runs, and lets the caller do the rest.
func (d *Deployment) prepare(spec *Spec) error {
	if spec.Preload != "" {
		const name = "preload.so"
		if err := Together(d.all(), func(n *Node) error {
			n.proc.Preload(name)
			return n.proc.Put(name, spec.Preload)
		}); err != nil {
			return err
		}
	}
	if spec.Before == nil {
		return nil
	}
	return spec.Before(d)
}

// linked blocks until the replicas of one primary follow it.
func (d *Deployment) linked(ctx context.Context) error {
	return Together(d.nodes, func(n *Node) error {
		if n.Role != RoleReplica {
			return nil
		}
		if err := until(ctx, func() (bool, error) {
			return n.Info(ctx, "replication", "master_link_status") == "up", nil
		}); err != nil {
			return fmt.Errorf("replica at %s does not follow: %w\n%s", n.Addr, err, tail(n.Log()))
		}
		return nil
	})
}

// errPortTaken is why a server did not start: try another port.
var errPortTaken = errors.New("port is taken")

// process is a server that runs somewhere: as a local process or in a container.
type process interface {
	Dir() string                 // its directory as it sees it
	Preload(name string)         // start with this shared library, which is put before
	Put(name, text string) error // writes a file into its directory
	Start() error                // with the files as they are, also after an end
	Signal(syscall.Signal) error // sends; does not wait for the effect
	Done() <-chan struct{}       // closed while it is not running
	Log() string                 // what it printed so far
	Delete() error               // its files; safe to repeat
}

// never is Done of a process that was never started.
var never = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func ended(p process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// end kills a process, and blocks until it is gone.
func end(p process) error {
	_ = p.Signal(syscall.SIGKILL) // what has ended gets none
	select {
	case <-p.Done():
		return nil
	case <-time.After(endsWithin):
		return errors.New("it does not end")
	}
}

// Ports are taken below the range from which systems number outgoing
// connections (32768 on Linux, 49152 elsewhere). In that range a client that
// redials a killed server can be given the server's own port, connect to
// itself, and keep the port from the server that is restarted.
const lowestPort, highestPort = 10000, 32000

// kept are UDP ports, of the numbers of all TCP ports that this process has used. While it lives, no other
// process of these tests takes one: a client would find another's server where a test has killed its own.
var kept sync.Map

// freePort returns a port of the loopback interface on which nothing listens.
// Another process can take it first: who uses it must be ready to ask again.
func freePort() (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		_ = l.Close()
		if keeps, err := net.ListenPacket("udp", address(port)); err == nil {
			kept.Store(port, keeps)
			return port, nil
		}
	}
	return 0, fmt.Errorf("server: no free port between %d and %d", lowestPort, highestPort)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
