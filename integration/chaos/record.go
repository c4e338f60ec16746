package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// record is the files of a round: name.faults.jsonl with the faults and violations, which stays,
// and name.jsonl with everything, which stays if the round fails.
type record struct {
	name  string // the path without an ending
	began stamp

	mu    sync.Mutex
	files []*os.File // faults, all
	lines []*bufio.Writer
	err   error // the first one
}

func newRecord(dir, name string) (*record, error) {
	err := os.MkdirAll(dir, 0o755)
	r := &record{name: filepath.Join(dir, name), began: now()}
	for _, path := range []string{r.name + ".faults.jsonl", r.path()} {
		f, failed := os.Create(path)
		err = errors.Join(err, failed)
		r.files, r.lines = append(r.files, f), append(r.lines, bufio.NewWriter(f))
	}
	return r, err
}

func (r *record) path() string { return r.name + ".jsonl" }

// line is what a line of a record looks like. At is in seconds since the round began; the times
// within Data are of the machine's clock, in nanoseconds.
type line struct {
	At   float64 `json:"at"`
	Time string  `json:"time,omitempty"` // of day
	What string  `json:"what"`
	Data any     `json:"data"`
}

func (r *record) write(what string, data any) {
	if r == nil { // of a test
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l, to := line{At: now().Sub(r.began).Seconds(), What: what, Data: data}, r.lines[1:]
	if what == "round" || what == "violation" || strings.HasPrefix(what, "fault") {
		l.Time, to = time.Now().Format("15:04:05.000000"), r.lines
	}
	for _, w := range to {
		r.err = errors.Join(r.err, json.NewEncoder(w).Encode(l))
	}
}

// close ends the record. keep: also of what is not a fault.
func (r *record) close(keep bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.err
	for i, f := range r.files {
		err = errors.Join(err, r.lines[i].Flush(), f.Close())
	}
	if !keep {
		err = errors.Join(err, os.Remove(r.path()))
	}
	return err
}
