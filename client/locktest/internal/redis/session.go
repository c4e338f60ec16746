// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"bufio"
	"errors"
	"net"
	"strings"
	"time"
)

// session is a client's connection. It is guarded by its node's mutex.
type session struct {
	node     *Node
	conn     net.Conn
	id       int64
	internal bool // Node.Do, scripts of the test: no network, no redirects
	enc      encoder
	out      []byte
	busy     bool  // it executes: its node's current client
	told     []any // messages, and
	behind   []any // invalidations that follow the reply of the command that caused them

	ended, quit bool

	asking, readonly bool

	tracked, optin, noloop bool
	caching                bool            // CLIENT CACHING YES said so of the next command
	channels               map[string]bool // subscriptions
	offset                 int64           // of its last write, for WAIT
}

// serve starts a connection. It returns false if the node takes none.
func (n *Node) serve(conn net.Conn, serial uint64, done func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.up {
		return false
	}
	s := &session{node: n, conn: conn, id: int64(serial), channels: map[string]bool{}}
	n.sessions[s.id] = s
	go s.loop(done)
	return true
}

func (s *session) loop(done func()) {
	r := bufio.NewReaderSize(s.conn, 1<<12) // a connection costs what its buffers do
	for {
		cmd, err := readCommand(r)
		if !s.handle(cmd, err, r.Buffered() == 0) {
			break
		}
	}
	s.node.mu.Lock()
	s.leave()
	s.node.mu.Unlock()
	_ = s.conn.Close()
	done()
}

// handle executes one command and reports whether the connection goes on.
func (s *session) handle(cmd []string, err error, last bool) bool {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.paused && n.up && !s.ended {
		n.cond.Wait()
	}
	if !n.up || s.ended {
		return false
	}
	if err != nil {
		var bad protocolError
		if errors.As(err, &bad) {
			s.out = s.enc.encode(s.out, Error(bad))
			s.flush()
		}
		return false
	}
	if len(cmd) == 0 {
		return true
	}
	lose := n.loseReply
	s.busy = true
	reply := n.execute(s, cmd)
	if w, ok := reply.(waitAcks); ok {
		reply = s.await(w)
	}
	s.busy = false
	if lose != nil && lose(cmd) {
		if l, ok := s.conn.(*link); ok {
			l.reset()
		}
		return false
	}
	s.out = s.enc.encode(s.out, reply)
	for _, v := range append(s.told, s.behind...) {
		s.out = s.enc.encode(s.out, v)
	}
	s.told, s.behind = nil, nil
	if last || s.quit || len(s.out) > 1<<16 {
		s.flush()
	}
	return !s.quit && !s.ended && n.up
}

func (s *session) flush() {
	if len(s.out) > 0 && s.conn != nil {
		_, _ = s.conn.Write(s.out) // a client that is gone is noticed by the next read
	}
	s.out = s.out[:0]
}

// pushInvalidation sends what a command of another client did at once, and what its own did behind
// the reply. Redis 8 makes who flushes wait like any other, so that its own FLUSHALL tells it at once.
func (s *session) pushInvalidation(keys any) {
	v := push{"invalidate", keys}
	if s.busy && (keys != nil || s.node.world.opt.Flavour != Redis80) {
		s.behind = append(s.behind, v)
		return
	}
	s.push(v)
}

// pushMessage sends a message. One of its own goes before the reply, and behind it since Redis 7.2.
func (s *session) pushMessage(v push) {
	if s.busy && s.node.world.opt.Flavour != Redis70 {
		s.told = append(s.told, v)
		return
	}
	s.push(v)
}

// push sends a message, behind the replies that are on their way. What a command or a function
// sends to others goes when it has ended.
func (s *session) push(v any) {
	if s.internal {
		return
	}
	s.out = s.enc.encode(s.out, v)
	switch u := s.node.unit; {
	case s.busy:
	case u != nil:
		u.told = append(u.told, s)
	default:
		s.flush()
	}
}

// end closes the connection from the server's side.
func (s *session) end() {
	if s.ended {
		return
	}
	s.ended = true
	s.leave()
	_ = s.conn.Close()
}

// leave makes the node forget the connection.
func (s *session) leave() {
	n := s.node
	if n.sessions[s.id] == s {
		delete(n.sessions, s.id)
	}
	for _, ch := range sortedKeys(s.channels) {
		s.unsubscribe(ch)
	}
	s.untrack()
}

// waitAcks is the reply of a WAIT that must wait.
type waitAcks struct {
	node     *Node
	offset   int64
	replicas int
	timeout  time.Duration // 0: for ever
}

// await blocks until enough replicas have a write, without the node's mutex.
func (s *session) await(w waitAcks) any {
	n := s.node
	s.busy = false
	s.flush()
	over := false
	if w.timeout > 0 {
		timer := time.AfterFunc(w.timeout, func() {
			n.mu.Lock()
			over = true
			n.cond.Broadcast()
			n.mu.Unlock()
		})
		defer timer.Stop()
	}
	for n.ackedBy(w.offset) < w.replicas && !over && n.up && !s.ended {
		if n.primary != nil {
			return Error("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")
		}
		n.cond.Wait()
	}
	return n.ackedBy(w.offset)
}

func hello(c *call) any {
	a, resp3 := c.args, c.s.enc.resp3
	if len(a) > 0 {
		if a[0] != "2" && a[0] != "3" {
			return Error("NOPROTO unsupported protocol version")
		}
		resp3, a = a[0] == "3", a[1:]
	}
	for len(a) > 0 {
		switch {
		case strings.EqualFold(a[0], "AUTH") && len(a) >= 3:
			if a[1] != "default" {
				return wrongPass
			}
			a = a[3:]
		case strings.EqualFold(a[0], "SETNAME") && len(a) >= 2:
			a = a[2:]
		default:
			return Error("ERR Syntax error in HELLO option '" + a[0] + "'")
		}
	}
	c.s.enc.resp3 = resp3
	mode, role := c.n.mode()
	return pairs{"server", strings.ToLower(c.n.brand()), "version", c.n.version(), "proto", 2 + oneIf(resp3),
		"id", c.s.id, "mode", mode, "role", role, "modules", []any{}}
}

// The only user is the default one, who has no password, and may do all.
const wrongPass = Error("WRONGPASS invalid username-password pair or user is disabled.")

func auth(c *call) any {
	switch {
	case len(c.args) < 2:
		return Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	case c.args[0] != "default":
		return wrongPass
	}
	return Status("OK")
}
