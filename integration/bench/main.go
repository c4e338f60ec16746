// Command bench measures Holdfast beside its rivals on servers that it starts itself, and writes a
// report. README.md says how to run it and how to read what it writes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// settings are the flags.
type settings struct {
	rounds   int
	quick    bool
	workload string
	rival    string
	out      string
	cores    string
	against  string
}

func main() {
	reexec.Main(roles)
	var s settings
	flag.IntVar(&s.rounds, "rounds", 0, "how often all is measured; 0 is 5, or 1 with -quick")
	flag.BoolVar(&s.quick, "quick", false, "a smoke run of less than a minute, whose numbers mean little")
	flag.StringVar(&s.workload, "workload", "", "comma list of workloads; empty is all: "+strings.Join(workloadNames(), ","))
	flag.StringVar(&s.rival, "rival", "", "comma list of rivals; empty is all; holdfast always takes part")
	flag.StringVar(&s.out, "out", "report", "folder for report.md and the plots")
	flag.StringVar(&s.cores, "cores", coresApart, "apart: a core for the servers, the others for the clients (Linux); shared: all for all")
	flag.StringVar(&s.against, "against", "", "folder of another checkout of Holdfast to compare this one with, instead of rivals; prints ratios")
	flag.Parse()
	if s.rounds == 0 {
		s.rounds = 5
		if s.quick {
			s.rounds = 1
		}
	}
	var err error
	if s.cores, err = settle(s.cores, clientsRole); err != nil {
		exit(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if s.against != "" {
		exit(runAgainst(ctx, s))
	}
	exit(run(ctx, s))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func workloadNames() (list []string) {
	for _, w := range workloads(true) {
		list = append(list, w.Name)
	}
	return list
}

// run measures what was asked for and writes the report after every round, so that an interrupted
// run leaves the last whole one.
func run(ctx context.Context, s settings) (err error) {
	r := report{began: time.Now(), load: loadAverage(), quick: s.quick, partly: s.workload+s.rival != "", cores: s.cores, results: results{}}
	if r.rivals, err = chosen(rivals(), s.rival+alsoHoldfast(s.rival), func(r rival) string { return r.Name }); err != nil {
		return err
	}
	if r.workloads, err = chosen(workloads(s.quick), s.workload, func(w workload) string { return w.Name }); err != nil {
		return err
	}
	w := &world{}
	defer func() {
		if failed := w.close(); err == nil {
			err = failed
		}
	}()
	for round := range s.rounds {
		if err := r.round(ctx, w, round); err != nil {
			return err
		}
		r.rounds++
		if err := r.write(s.out); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "round %d of %d done after %v; report in %s\n", round+1, s.rounds, time.Since(r.began).Round(time.Second), s.out)
	}
	return nil
}

// alsoHoldfast completes a list of rivals: bars compare with holdfast.
func alsoHoldfast(list string) string {
	if list == "" || slices.Contains(strings.Split(list, ","), holdfastName) {
		return ""
	}
	return "," + holdfastName
}

// round measures every cell once for every rival: one after the other, from another one on in each
// round, so that what changes on the machine in the meantime hits all alike.
func (r report) round(ctx context.Context, w *world, round int) error {
	for _, work := range r.workloads {
		for _, c := range work.Cells {
			for i := range r.rivals {
				v := r.rivals[(i+round)%len(r.rivals)]
				if !c.takes(v, round) {
					continue
				}
				got, err := c.Run(ctx, w, v)
				if err != nil {
					return fmt.Errorf("%s, %s, %s: %w", work.Name, c.Case, v.Name, err)
				}
				at := where{work.Name, c.Case, v.Name}
				r.results[at] = append(r.results[at], got)
				fmt.Fprintf(os.Stderr, "%d %s, %s: %s%s\n", round+1, work.Name, c.Case, v.Name, brief(work, got))
			}
		}
	}
	return nil
}

// brief is the first metrics of a run, for who watches.
func brief(w workload, v values) (text string) {
	for _, m := range w.Columns[:min(3, len(w.Columns))] {
		if x, ok := v[m]; ok {
			text += ", " + labels[m] + " " + show(x, true)
		}
	}
	return text
}

// chosen picks the named ones of a list, in the order of the list; no names mean all.
func chosen[T any](all []T, names string, name func(T) string) (picked []T, err error) {
	if names == "" {
		return all, nil
	}
	wanted := strings.Split(names, ",")
	for _, x := range all {
		if i := slices.Index(wanted, name(x)); i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
			picked = append(picked, x)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("there is no %s", strings.Join(wanted, ", "))
	}
	return picked, nil
}
