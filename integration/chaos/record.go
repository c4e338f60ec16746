// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// record is the file of a round, which stays if the round fails.
type record struct {
	began stamp

	mu    sync.Mutex
	file  *os.File
	lines *bufio.Writer
	err   error
}

func newRecord(dir, name string) (*record, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, name+".jsonl"))
	return &record{began: now(), file: f, lines: bufio.NewWriter(f)}, err
}

// line is what a line of a record looks like. At is in seconds since the round began; the times
// within Data are of the machine's clock, in nanoseconds.
type line struct {
	At   float64 `json:"at"`
	Time string  `json:"time"` // of day
	What string  `json:"what"`
	Data any     `json:"data"`
}

func (r *record) write(what string, data any) {
	if r == nil { // of a test
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := line{now().Sub(r.began).Seconds(), time.Now().Format("15:04:05.000000"), what, data}
	r.err = errors.Join(r.err, json.NewEncoder(r.lines).Encode(l))
}

// close ends the record, and removes it if it is not to be kept.
func (r *record) close(keep bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := errors.Join(r.err, r.lines.Flush(), r.file.Close())
	if !keep {
		err = errors.Join(err, os.Remove(r.file.Name()))
	}
	return err
}
