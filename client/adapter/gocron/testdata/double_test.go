// SPDX-License-Identifier: Apache-2.0

package gocron

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
)

// double stands where a double of gocron's stood: each question of its schedulers goes to a process of
// its own, at the other end of a connection. refused hears of each no.
type double struct {
	processes chan net.Conn
	refused   chan struct{}
	asked     sync.WaitGroup
}

// holdfast makes a double of a kind, "locker" or "elector", for three schedulers.
func holdfast(kind string, refused chan struct{}) *double {
	d := &double{processes: make(chan net.Conn, 3), refused: refused}
	d.asked.Add(cap(d.processes))
	for len(d.processes) < cap(d.processes) {
		process, err := net.Dial("tcp", os.Getenv("HOLDFAST_PROCESSES"))
		if err != nil {
			panic(err)
		}
		if err := ask(process, kind); err != nil {
			panic(err)
		}
		d.processes <- process
	}
	close(d.processes)
	return d
}

func (d *double) IsLeader(context.Context) error {
	_, err := d.next("leads")
	return err
}

func (d *double) Lock(_ context.Context, key string) (Lock, error) {
	process, err := d.next("lock " + key)
	if err != nil {
		return nil, err
	}
	return held{process}, nil
}

func (d *double) next(question string) (process net.Conn, err error) {
	process, ok := <-d.processes
	if !ok { // its next run, on a machine that is late with the end of the test
		return nil, errors.New("there are three processes, and all have been asked")
	}
	err = ask(process, question)
	if err != nil {
		d.refused <- struct{}{}
	}
	d.asked.Done()
	if err == nil {
		d.asked.Wait() // their test ends with the job, whether all have asked or not
	}
	return process, err
}

type held struct{ process net.Conn }

func (h held) Unlock(context.Context) error { return ask(h.process, "unlock") }

func ask(process net.Conn, question string) error {
	if _, err := fmt.Fprintln(process, question); err != nil {
		panic(err)
	}
	answer, err := bufio.NewReader(process).ReadString('\n')
	if err != nil {
		panic(err)
	}
	if answer = strings.TrimSpace(answer); answer != "yes" {
		return errors.New(answer)
	}
	return nil
}
