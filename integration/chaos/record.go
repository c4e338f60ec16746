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

	mu     sync.Mutex
	faults *sheet
	all    *sheet
	err    error // the first one
}

// sheet is one file of JSON lines.
type sheet struct {
	file *os.File
	buf  *bufio.Writer
}

func newSheet(path string) (*sheet, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &sheet{f, bufio.NewWriter(f)}, nil
}

func (s *sheet) close() error { return errors.Join(s.buf.Flush(), s.file.Close()) }

func newRecord(dir, name string) (*record, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &record{name: filepath.Join(dir, name), began: now()}
	var err error
	if r.faults, err = newSheet(r.name + ".faults.jsonl"); err != nil {
		return nil, err
	}
	if r.all, err = newSheet(r.path()); err != nil {
		return nil, errors.Join(err, r.faults.close())
	}
	return r, nil
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
	l := line{At: now().Sub(r.began).Seconds(), What: what, Data: data}
	few := what == "round" || what == "violation" || strings.HasPrefix(what, "fault")
	if few {
		l.Time = time.Now().Format("15:04:05.000000")
	}
	text, err := json.Marshal(l)
	r.note(err)
	text = append(text, '\n')
	_, err = r.all.buf.Write(text)
	r.note(err)
	if few {
		_, err = r.faults.buf.Write(text)
		r.note(err)
	}
}

func (r *record) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

// close ends the record. keep: also of what is not a fault.
func (r *record) close(keep bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := errors.Join(r.err, r.faults.close(), r.all.close())
	if !keep {
		err = errors.Join(err, os.Remove(r.path()))
	}
	return err
}
