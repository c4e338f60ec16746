// SPDX-License-Identifier: Apache-2.0

// Command bench measures Holdfast beside its rivals, on servers that it starts itself. README.md says how to
// run it and how to read its report.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/integration/server"
)

// settings are the flags.
type settings struct {
	rounds   int
	quick    bool
	workload string
	out      string

	flavours []server.Flavour
	core     *int // of the servers; nil: they share all with the clients
}

func main() {
	var s settings
	flag.IntVar(&s.rounds, "rounds", 0, "how often all is measured; 0 is 7, or 1 with -quick")
	flag.BoolVar(&s.quick, "quick", false, "a smoke run of less than a minute, whose numbers mean little")
	flag.StringVar(&s.workload, "workload", "", "comma list of workloads; empty is all: "+strings.Join(workloadNames(), ","))
	flag.StringVar(&s.out, "out", "report", "folder for benchmark.md and hot.svg")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures what was asked for. It writes the report after every round, so that an interrupted
// run leaves the last whole one.
func run(ctx context.Context, s settings) (err error) {
	if s.rounds == 0 {
		s.rounds = 7
		if s.quick {
			s.rounds = 1
		}
	}
	if s.flavours, err = flavours(); err != nil {
		return err
	}
	if s.quick {
		s.flavours = s.flavours[:1]
	}
	r := newReport(s)
	if r.cells, err = chosen(cells(len(s.flavours)), s.workload); err != nil {
		return err
	}
	if s.core, err = part(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: servers and clients share all cores:", err)
	}
	r.core = s.core
	w := &world{flavours: s.flavours, sites: map[spot]*site{}, core: s.core, quick: s.quick}
	defer func() { err = errors.Join(err, w.close()) }()
	for range s.rounds {
		if err := r.round(ctx, w); err != nil {
			return err
		}
		r.rounds++
		if err := r.write(s.out); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "round %d of %d is done; report in %s\n", r.rounds, s.rounds, s.out)
	}
	return nil
}

// round measures every cell once for every rival: one right after the other, from another one on in
// each cell and round, so that what changes on the machine in the meantime hits all alike.
func (r *report) round(ctx context.Context, w *world) error {
	players := rivals()
	for n, c := range r.cells {
		for i := range players {
			p := players[(i+n+r.rounds)%len(players)]
			if !p.takes(c) {
				continue
			}
			got, err := c.measure(ctx, w, p)
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return fmt.Errorf("%s, %s: %w", c, p.Name, err)
			}
			r.add(c, p.Name, got)
			text := ""
			for _, m := range c.section().columns[:min(3, len(c.section().columns))] {
				if x, ok := got[m]; ok {
					text += ", " + labels[m] + " " + show(x)
				}
			}
			fmt.Fprintf(os.Stderr, "%d %s, %s: %s%s\n", r.rounds+1, c, r.servers[c.server], p.Name, text)
		}
	}
	return nil
}

// chosen picks the cells of the named workloads; no names mean all.
func chosen(all []cell, names string) (picked []cell, err error) {
	if names == "" {
		return all, nil
	}
	for _, wanted := range strings.Split(names, ",") {
		if !slices.Contains(workloadNames(), wanted) {
			return nil, fmt.Errorf("there is no workload %s", wanted)
		}
	}
	for _, c := range all {
		if slices.Contains(strings.Split(names, ","), c.workload) {
			picked = append(picked, c)
		}
	}
	return picked, nil
}
