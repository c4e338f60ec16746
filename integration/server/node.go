// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Role is the part that a node was started to play. A failover does not
// change it.
type Role string

// The roles of a node.
const (
	RolePrimary  Role = "primary"
	RoleReplica  Role = "replica"
	RoleSentinel Role = "sentinel"
)

const (
	readyWithin = 90 * time.Second     // a node that is started answers, or it is an error
	endsWithin  = 30 * time.Second     // a node that is killed is gone, or it is an error
	pollEvery   = 5 * time.Millisecond // how often a condition of a server is looked at
)

// Node is one server process of a Deployment. Its methods are safe for
// concurrent use. Under a test a method that fails also fails the test, so its
// error need not be checked there.
type Node struct {
	Addr string // 127.0.0.1:port, the same after a Restart
	Role Role   // as started

	conf          string // the configuration file it was first started with
	port, busPort int    // busPort is 0 outside Cluster
	password      string
	proc          process               // nil for the server at HOLDFAST_REDIS
	external      *rueidis.ClientOption // of the server at HOLDFAST_REDIS
	tb            testing.TB
	mu            sync.Mutex // one of Kill, Pause, Resume, Restart, Replace at a time
	lives         int        // under mu; how often it was replaced
}

// Kill ends the node with SIGKILL and blocks until it is gone, paused or not.
// Killing a node that is gone does nothing.
func (n *Node) Kill() error { return n.act("kill", func() error { return end(n.proc) }) }

// Pause freezes the node with SIGSTOP: its connections stay open, and the
// kernel still accepts new ones, but nothing is answered until Resume.
func (n *Node) Pause() error {
	return n.act("pause", func() error { return n.proc.Signal(syscall.SIGSTOP) })
}

// Resume lets a paused node go on.
func (n *Node) Resume() error {
	return n.act("resume", func() error { return n.proc.Signal(syscall.SIGCONT) })
}

// Restart starts a node that was killed, at the same address and
// with its files as they are, and blocks until it answers. A node that still
// runs is killed first. Without persistence in the Spec it comes back empty,
// without the functions too.
func (n *Node) Restart() error {
	return n.act("restart", func() error {
		if err := end(n.proc); err != nil {
			return err
		}
		return n.again(context.Background())
	})
}

// Replace starts an empty server at the node's address, also where the Spec says
// that data is kept, and blocks until it answers. A node that still runs is
// killed first. A Restart that follows starts the new one again.
func (n *Node) Replace() error {
	return n.act("replace", func() error {
		if err := end(n.proc); err != nil {
			return err
		}
		n.lives++
		var files conf // names that no server here has used
		files.set("appenddirname", fmt.Sprintf("appendonlydir-%d", n.lives))
		files.set("dbfilename", fmt.Sprintf("dump-%d.rdb", n.lives))
		if err := n.proc.Put("redis.conf", n.conf+files.String()); err != nil {
			return err
		}
		return n.again(context.Background())
	})
}

// again starts a node, for the first time or after an end, and blocks until it answers.
func (n *Node) again(ctx context.Context) error {
	if err := n.proc.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return n.ready(ctx)
}

// Put writes a file into the node's working directory, in place of one of its
// name, and returns its path as the node sees it.
func (n *Node) Put(name, text string) (path string, err error) {
	err = n.act("put "+name+" at", func() error {
		path = n.proc.Dir() + "/" + name
		return n.proc.Put(name, text)
	})
	return path, err
}

// Ports are those at which other servers connect to the node: where clients do,
// and in a Cluster that of the bus.
func (n *Node) Ports() []int {
	if n.busPort == 0 {
		return []int{n.port}
	}
	return []int{n.port, n.busPort}
}

// Log returns what the node printed so far.
func (n *Node) Log() string {
	if n.proc == nil {
		return ""
	}
	return n.proc.Log()
}

// Do sends one command to this node over a connection of its own, as RESP2,
// and returns its reply. It neither follows redirects nor retries.
func (n *Node) Do(ctx context.Context, command ...string) (rueidis.RedisMessage, error) {
	replies, err := n.doAll(ctx, command)
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	return replies[0].ToMessage()
}

// doAll sends commands over one connection.
func (n *Node) doAll(ctx context.Context, commands ...[]string) ([]rueidis.RedisResult, error) {
	c, err := rueidis.NewClient(n.option(ctx))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	batch := make(rueidis.Commands, len(commands))
	for i, args := range commands {
		batch[i] = c.B().Arbitrary(args...).Build()
	}
	return c.DoMulti(ctx, batch...), nil
}

func (n *Node) option(ctx context.Context) rueidis.ClientOption {
	o := rueidis.ClientOption{InitAddress: []string{n.Addr}, Password: n.password}
	if n.external != nil {
		o = *n.external
	}
	o.Dialer = net.Dialer{Timeout: 5 * time.Second}
	if ends, ok := ctx.Deadline(); ok { // a node that is paused accepts, and does not answer
		o.Dialer.Timeout = max(time.Millisecond, min(o.Dialer.Timeout, time.Until(ends)))
	}
	o.ForceSingleClient, o.AlwaysRESP2, o.DisableCache, o.DisableRetry = true, true, true, true
	o.PipelineMultiplex = -1
	// for one request: the defaults take longer to make than the request
	o.RingScaleEachConn, o.ReadBufferEachConn, o.WriteBufferEachConn = 4, 4096, 4096
	return o
}

// Info returns one field of INFO, or "".
func (n *Node) Info(ctx context.Context, section, field string) string {
	m, err := n.Do(ctx, "INFO", section)
	if err != nil {
		return ""
	}
	text, _ := m.ToString()
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// ready blocks until the node answers. That the answer comes from this node,
// not from another that got its port, shows by the path of its configuration.
func (n *Node) ready(ctx context.Context) error {
	err := until(ctx, func() (bool, error) {
		if ended(n.proc) {
			return false, n.failed()
		}
		if _, err := n.Do(ctx, "PING"); err != nil {
			return false, nil
		}
		if !strings.HasPrefix(n.Info(ctx, "server", "config_file"), n.proc.Dir()+"/") {
			return false, errPortTaken
		}
		return true, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer: %w\n%s", err, tail(n.Log()))
	}
	return err
}

// failed tells why a node ended while it was being started.
func (n *Node) failed() error {
	log := n.Log()
	if strings.Contains(log, "Address already in use") || strings.Contains(log, "Failed listening on port") {
		return errPortTaken
	}
	return fmt.Errorf("ended at once:\n%s", tail(log))
}

func (n *Node) act(verb string, action func() error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := errors.New("the server at HOLDFAST_REDIS is not ours: ask for an Owned one")
	if n.proc != nil {
		err = action()
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("server: %s %s: %w", verb, n.Addr, err)
	if n.tb != nil {
		n.tb.Helper()
		n.tb.Error(err)
	}
	return err
}

// until looks at a condition until it is true or an error, or ctx ends.
func until(ctx context.Context, condition func() (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if ok, err := condition(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// tail returns the last lines of a log.
func tail(log string) string {
	const most = 1500
	return log[max(0, len(log)-most):]
}
