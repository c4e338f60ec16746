package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"sync"
)

// guardedRegister is the resource that the locks guard: a number for each lock. It refuses tokens
// that are older than one it has seen, in reads and in writes. A holder reads, and writes one more:
// an update is lost when a write is not of one more than the value.
type guardedRegister struct {
	history *history
	listen  net.Listener
	working sync.WaitGroup

	mu    sync.Mutex
	cells map[string]*cell
	conns map[net.Conn]bool // nil when it is closed
}

type cell struct{ value, seen int64 }

func openRegister(h *history) (*guardedRegister, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &guardedRegister{history: h, listen: l, cells: map[string]*cell{},
		conns: map[net.Conn]bool{}}
	r.working.Go(r.accept)
	return r, nil
}

func (r *guardedRegister) addr() string { return r.listen.Addr().String() }

func (r *guardedRegister) close() error {
	err := r.listen.Close()
	r.mu.Lock()
	for c := range r.conns {
		err = errors.Join(err, c.Close())
	}
	r.conns = nil
	r.mu.Unlock()
	r.working.Wait()
	return err
}

func (r *guardedRegister) accept() {
	for {
		c, err := r.listen.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		open := r.conns != nil
		if open {
			r.conns[c] = true
		}
		r.mu.Unlock()
		if !open {
			c.Close()
			return
		}
		r.working.Go(func() { r.serve(c) })
	}
}

func (r *guardedRegister) serve(c net.Conn) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.conns[c] {
			delete(r.conns, c)
			c.Close()
		}
	}()
	for in := bufio.NewScanner(c); in.Scan(); {
		var verb, lock string
		var token, value int64
		if _, err := fmt.Sscan(in.Text(), &verb, &lock, &token, &value); err != nil {
			return
		}
		value, ok := r.use(verb, lock, token, value)
		if _, err := fmt.Fprintln(c, value, ok); err != nil {
			return
		}
	}
}

// use reads or writes.
func (r *guardedRegister) use(verb, lock string, token, value int64) (int64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.cells[lock]
	if at == nil {
		at = &cell{}
		r.cells[lock] = at
	}
	if token < at.seen {
		return at.value, false
	}
	at.seen = token
	if verb == "read" {
		return at.value, true
	}
	r.history.updated(update{now(), lock, token, at.value, value})
	if value != at.value+1 {
		r.history.trouble(wrong("register", lock, now(), "token %d writes %d over %d: an update is lost", token, value, at.value))
	}
	at.value = value
	return value, true
}

// registerClient is a worker's way to the register.
type registerClient struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialRegister(addr string) (*registerClient, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &registerClient{c, bufio.NewReader(c)}, nil
}

func (r *registerClient) close() { r.conn.Close() }

func (r *registerClient) read(lock string, token int64) (int64, bool) {
	return r.ask("read", lock, token, 0)
}

func (r *registerClient) write(lock string, token, value int64) bool {
	_, ok := r.ask("write", lock, token, value)
	return ok
}

// ask fails only when the harness is gone, and then this process is about to end.
func (r *registerClient) ask(verb, lock string, token, value int64) (int64, bool) {
	if _, err := fmt.Fprintln(r.conn, verb, lock, token, value); err != nil {
		return 0, false
	}
	text, err := r.in.ReadString('\n')
	if err != nil {
		return 0, false
	}
	var ok bool
	if _, err := fmt.Sscan(text, &value, &ok); err != nil {
		return 0, false
	}
	return value, ok
}
