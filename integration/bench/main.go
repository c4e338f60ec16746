// SPDX-License-Identifier: Apache-2.0

// Command bench measures Holdfast beside its rivals, or beside an older commit of itself, on servers
// that it starts itself. README.md says how to run it and how to read its report.
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

	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
)

// settings are the flags. What a side has to know too begins with a capital.
type settings struct {
	rounds   int
	workload string
	out      string
	against  string

	Quick    bool
	Flavours []server.Flavour
	Core     *int // of the servers; nil: they share all with the clients
}

func main() {
	reexec.Main(map[string]reexec.Role{sideRole: measureCells})
	var s settings
	flag.IntVar(&s.rounds, "rounds", 0, "how often all is measured; 0 is 7, or 1 with -quick")
	flag.BoolVar(&s.Quick, "quick", false, "a smoke run of less than a minute, whose numbers mean little")
	flag.StringVar(&s.workload, "workload", "", "comma list of workloads; empty is all: "+strings.Join(workloadNames(), ","))
	flag.StringVar(&s.out, "out", "report", "folder for benchmark.md and hot.svg")
	flag.StringVar(&s.against, "against", "", "commit to compare this working tree with, instead of rivals")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// player is one of those that are compared: a library, or a commit of ours.
type player struct {
	name    string
	takes   func(cell) bool
	measure func(context.Context, cell) (values, error)
}

// run measures what was asked for. It writes the report after every round, so that an interrupted
// run leaves the last whole one.
func run(ctx context.Context, s settings) (err error) {
	if s.rounds == 0 {
		s.rounds = 7
		if s.Quick {
			s.rounds = 1
		}
	}
	if s.Flavours, err = flavours(); err != nil {
		return err
	}
	if s.Quick || s.against != "" {
		s.Flavours = s.Flavours[:1]
	}
	r := newReport(s)
	if r.cells, err = chosen(cells(len(s.Flavours)), s.workload); err != nil {
		return err
	}
	if s.Core, err = part(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: servers and clients share all cores:", err)
	}
	r.core = s.Core
	players, end, err := s.players(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for range s.rounds {
		if err := r.round(ctx, players); err != nil {
			return err
		}
		r.rounds++
		if err := r.write(s.out); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "round %d of %d is done; report in %s\n", r.rounds, s.rounds, s.out)
	}
	if s.against != "" {
		fmt.Print(r.ratioTable(players[1].name))
	}
	return nil
}

// players returns who is compared, Holdfast of this working tree first, and what ends them.
func (s settings) players(ctx context.Context) (list []player, end func() error, err error) {
	if s.against != "" {
		return sides(ctx, s)
	}
	w := s.world()
	for _, v := range rivals() {
		list = append(list, player{v.Name, v.takes, func(ctx context.Context, c cell) (values, error) {
			return c.measure(ctx, w, v)
		}})
	}
	return list, w.close, nil
}

func (s settings) world() *world {
	return &world{flavours: s.Flavours, sites: map[spot]*site{}, core: s.Core, quick: s.Quick}
}

// round measures every cell once for every player: one right after the other, from another one on in
// each cell and round, so that what changes on the machine in the meantime hits all alike.
func (r *report) round(ctx context.Context, players []player) error {
	for n, c := range r.cells {
		for i := range players {
			p := players[(i+n+r.rounds)%len(players)]
			if !p.takes(c) {
				continue
			}
			got, err := p.measure(ctx, c)
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return fmt.Errorf("%s, %s: %w", c, p.name, err)
			}
			r.add(c, p.name, got)
			text := ""
			for _, m := range c.section().columns[:min(3, len(c.section().columns))] {
				if x, ok := got[m]; ok {
					text += ", " + labels[m] + " " + show(x)
				}
			}
			fmt.Fprintf(os.Stderr, "%d %s, %s: %s%s\n", r.rounds+1, c, r.servers[c.server], p.name, text)
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
		picked = append(picked, slices.DeleteFunc(slices.Clone(all), func(c cell) bool { return c.workload != wanted })...)
	}
	return picked, nil
}
