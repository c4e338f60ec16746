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
)

// settings are the flags.
type settings struct {
	rounds   int
	quick    bool
	workload string
	rival    string
	out      string
	shared   bool
	against  string

	core *int // of the servers; nil: they share all with the clients
}

func main() {
	reexec.Main(map[string]reexec.Role{sideRole: measureCells})
	var s settings
	flag.IntVar(&s.rounds, "rounds", 0, "how often all is measured; 0 is 5, or 1 with -quick")
	flag.BoolVar(&s.quick, "quick", false, "a smoke run of less than a minute, whose numbers mean little")
	flag.StringVar(&s.workload, "workload", "", "comma list of workloads; empty is all: "+strings.Join(workloadNames(), ","))
	flag.StringVar(&s.rival, "rival", "", "comma list of rivals; empty is all; holdfast always takes part")
	flag.StringVar(&s.out, "out", "report", "folder for report.md and report.json")
	flag.BoolVar(&s.shared, "shared", false, "servers and clients share all cores; else the servers have the first one (Linux)")
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
		s.rounds = 5
		if s.quick {
			s.rounds = 1
		}
	}
	r := newReport(s)
	if r.cells, err = chosen(cells(s.quick), s.workload, func(c cell) string { return c.Workload }); err != nil {
		return err
	}
	if !s.shared {
		if s.core, err = part(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: servers and clients share all cores:", err)
		}
	}
	r.ServerCore = s.core
	players, end, err := s.players(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for range s.rounds {
		if err := r.round(ctx, players); err != nil {
			return err
		}
		r.Rounds++
		if err := r.write(s.out); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "round %d of %d is done; report in %s\n", r.Rounds, s.rounds, s.out)
	}
	if s.against != "" {
		fmt.Print(r.ratioTable(players[1].name))
	}
	return nil
}

// players returns who is compared, Holdfast of this working tree first, and what ends them.
func (s settings) players(ctx context.Context) (list []player, end func() error, err error) {
	if s.against != "" {
		if s.rival != "" {
			return nil, nil, errors.New("rivals have no part in -against")
		}
		return sides(ctx, s)
	}
	names := s.rival
	if names != "" && !slices.Contains(strings.Split(names, ","), holdfastName) {
		names += "," + holdfastName
	}
	picked, err := chosen(rivals(), names, func(v rival) string { return v.Name })
	if err != nil {
		return nil, nil, err
	}
	w := &world{core: s.core}
	for _, v := range picked {
		list = append(list, player{v.Name, v.takes, func(ctx context.Context, c cell) (values, error) {
			return c.measure(ctx, w, v)
		}})
	}
	return list, w.close, nil
}

// round measures every cell once for every player: one right after the other, from another one on in
// each cell and round, so that what changes on the machine in the meantime hits all alike.
func (r *report) round(ctx context.Context, players []player) error {
	for n, c := range r.cells {
		for i := range players {
			p := players[(i+n+r.Rounds)%len(players)]
			if !p.takes(c) {
				continue
			}
			got, err := p.measure(ctx, c)
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return fmt.Errorf("%s, %s, %s: %w", c.Workload, c.Case, p.name, err)
			}
			r.add(c, p.name, got)
			text := ""
			for _, m := range c.columns()[:3] {
				if x, ok := got[m]; ok {
					text += ", " + labels[m] + " " + show(x)
				}
			}
			fmt.Fprintf(os.Stderr, "%d %s, %s: %s%s\n", r.Rounds+1, c.Workload, c.Case, p.name, text)
		}
	}
	return nil
}

// chosen picks the named ones of a list, in the order of the list; no names mean all.
func chosen[T any](all []T, names string, name func(T) string) (picked []T, err error) {
	if names == "" {
		return all, nil
	}
	for _, wanted := range strings.Split(names, ",") {
		if !slices.ContainsFunc(all, func(x T) bool { return name(x) == wanted }) {
			return nil, fmt.Errorf("there is no %s", wanted)
		}
	}
	for _, x := range all {
		if slices.Contains(strings.Split(names, ","), name(x)) {
			picked = append(picked, x)
		}
	}
	return picked, nil
}
