package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// side is one of two checkouts: a process that measures with its library and client, on servers of
// its own.
type side struct {
	name string
	*reexec.Process
}

// measure lets a side measure a cell.
func (s side) measure(at where) (got values, err error) {
	question, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	if err := s.Say(string(question)); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	answer, err := s.Hear()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return got, json.Unmarshal([]byte(answer), &got)
}

// measureCells is the role of a side: it measures the cells that it is told, and answers with their
// values.
func measureCells(p *reexec.Parent) (err error) {
	undisturbed()
	var quick bool
	if err := p.Job(&quick); err != nil {
		return err
	}
	w, all := &world{}, workloads(quick)
	defer func() {
		if failed := w.close(); err == nil {
			err = failed
		}
	}()
	for {
		line, err := p.Hear()
		if err != nil {
			return nil // the end of the input
		}
		var at where
		if err := json.Unmarshal([]byte(line), &at); err != nil {
			return err
		}
		got, err := measureCell(w, all, at)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", at.Workload, at.Case, err)
		}
		text, err := json.Marshal(got)
		if err != nil {
			return err
		}
		p.Say(string(text))
	}
}

// measureCell leaves out what JSON cannot carry: a metric that is not known, or infinite.
func measureCell(w *world, all []workload, at where) (values, error) {
	r, err := rivalNamed(at.Rival)
	if err != nil {
		return nil, err
	}
	for _, work := range all {
		for _, c := range work.Cells {
			if work.Name != at.Workload || c.Case != at.Case {
				continue
			}
			got, err := c.Run(context.Background(), w, r)
			for m, x := range got {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					delete(got, m)
				}
			}
			return got, err
		}
	}
	return nil, errors.New("there is no such case")
}
