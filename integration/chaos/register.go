// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net"
	"net/rpc"
	"sync"
)

// guardedRegister is the resource that the locks guard: a number for each lock. It refuses tokens
// that are older than one it has seen, in reads and in writes. A holder reads, and writes one more:
// an update is lost when a write is not of one more than the value.
type guardedRegister struct {
	history   *history
	listen    net.Listener
	accepting sync.WaitGroup

	mu    sync.Mutex
	cells map[string]*cell
}

type cell struct{ value, seen int64 }

// Access is a read, or a write of a value.
type Access struct {
	Write        bool
	Lock         string
	Token, Value int64
}

var errOldToken = errors.New("the token is older than one that was seen")

func openRegister(h *history) (*guardedRegister, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &guardedRegister{history: h, listen: l, cells: map[string]*cell{}}
	server := rpc.NewServer()
	if err := server.RegisterName("register", r); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	r.accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(c) // until the process that connected is gone
		}
	})
	return r, nil
}

func (r *guardedRegister) addr() string { return r.listen.Addr().String() }

func (r *guardedRegister) close() error {
	err := r.listen.Close()
	r.accepting.Wait()
	return err
}

// Use reads or writes.
func (r *guardedRegister) Use(a Access, value *int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.cells[a.Lock]
	if at == nil {
		at = &cell{}
		r.cells[a.Lock] = at
	}
	if a.Token < at.seen {
		return errOldToken
	}
	at.seen = a.Token
	if a.Write {
		r.history.updated(update{now(), a.Lock, a.Token, at.value, a.Value})
		if a.Value != at.value+1 {
			r.history.trouble(wrong("register", a.Lock, now(), "token %d writes %d over %d: an update is lost",
				a.Token, a.Value, at.value))
		}
		at.value = a.Value
	}
	*value = at.value
	return nil
}

// use asks the register. It also fails when the harness is gone, and then this process is about to end.
func use(register *rpc.Client, a Access) (value int64, err error) {
	err = register.Call("register.Use", a, &value)
	return value, err
}
