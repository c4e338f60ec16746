// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/bench"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/rights"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

const (
	benchPrefix  = "holdfast-bench:"
	benchFor     = 10 * time.Second
	benchWorkers = 16
	benchLease   = 30 * time.Second
)

// benchFlags say how "bench" takes locks.
type benchFlags struct {
	where
	bench.Settings
	only      []string
	guard     time.Duration
	replicas  int
	ownPrefix string // with the random part
}

func benchCommand(a *app) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:     "bench",
		GroupID: groupLocks,
		Short:   "Measure what locks cost on this deployment, from here",
		Long: `Bench takes and gives back locks for ten seconds, and says what that costs from this host: how long it takes, how often
it can be done, and how many round trips it is. It has five parts, which share the time:

  round_trip  a call that only reads, by one worker: the yardstick
  alone       acquire and release by one worker; nobody else wants the locks
  parallel    the same by all workers, each with locks of its own
  contended   all workers want one lock, half of them by a second client, so each hand-off goes over the server
  renewal     renew a lock, by one worker

Its locks have names of their own: --prefix and a random part. All are given back at the end, and also after an
interrupt (Ctrl-C), which prints what was measured until then. If it is killed they end with their lease. It touches
nobody's locks, but its workers ask as fast as the server answers: beside production begin with --workers 2. More round
trips in parallel than alone are queues, of the server or of this host.

Give it the --lease, --guard, --replicas and --quorum of your clients, because those are what locks cost. Calls that
fail are counted by kind; then the exit code is 3.

The user needs the rights of a client under the prefix. This prints them, with --cluster, --sentinel, --guard and
--replicas as needed:
  holdfast acl --for client --prefix holdfast-bench:`,
		Example: `  holdfast bench --addr redis-1:6379
  holdfast bench --for 1m --workers 64 --replicas 1
  holdfast bench --only contended --json | jq .contended.hand_offs_per_second`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return usageError{err}
			}
			return a.bench(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.For, "for", benchFor, "`duration` of all parts together")
	flags.IntVar(&f.Workers, "workers", benchWorkers, "`number` of those who call at a time")
	flags.StringSliceVar(&f.only, "only", nil, "measure only these `parts`, and the round trip: alone, parallel, contended, renewal")
	flags.DurationVar(&f.Lease, "lease", benchLease, "`duration` of the leases")
	flags.IntVar(&f.replicas, "replicas", 0, "this `number` of replicas must have each lock too")
	flags.DurationVar(&f.guard, "guard", 0, "as Config.Guard: the `duration` that a server must remember; at least the lease")
	flags.StringVar(&f.prefix, "prefix", benchPrefix, "`text` that the keys begin with; a random part follows")
	flags.BoolVar(&f.quorum, "quorum", false, "the addresses are the servers of a quorum, all of them, in their order")
	offer(cmd, "only", bench.Parts()...)
	return cmd
}

// check wants settings that can be measured, and completes them.
func (f *benchFlags) check() error {
	switch {
	case f.For <= 0:
		return errors.New("--for must be positive")
	case f.Workers < bench.MinWorkers || f.Workers > bench.MaxWorkers:
		return fmt.Errorf("--workers must be from %d to %d, not %d", bench.MinWorkers, bench.MaxWorkers, f.Workers)
	case f.Lease < bench.MinLease:
		return fmt.Errorf("--lease must be at least %v", bench.MinLease)
	case f.guard < 0 || f.guard > 0 && f.guard < f.Lease:
		return errors.New("--guard must be at least the lease; 0 is none")
	case f.replicas < 0:
		return errors.New("--replicas must not be negative")
	case f.replicas > 0 && f.quorum:
		return errors.New("--replicas and --quorum exclude each other")
	}
	f.Parts = bench.Parts()
	if len(f.only) > 0 {
		f.Parts = nil
	}
	for _, name := range f.only {
		part := bench.Part(strings.ReplaceAll(name, "-", "_"))
		if !slices.Contains(bench.Parts(), part) {
			return fmt.Errorf("--only: there is no part %q: they are round_trip, alone, parallel, contended and renewal", name)
		}
		f.Parts = append(f.Parts, part)
	}
	return nil
}

func (a *app) bench(ctx context.Context, f *benchFlags) error {
	f.ownPrefix, f.Grace = f.prefix+fmt.Sprintf("%08x:", rand.Uint32()), a.cfg.nodeTimeout()
	progress := terminal.Watch(a.stderr)
	defer progress.End()
	progress.Say("connecting ...")
	clients, where, err := a.openBench(ctx, f)
	if err != nil {
		return a.advise(err, "client --prefix "+rights.Quoted(f.prefix))
	}
	defer clients.Close()
	begun := time.Now()
	f.Say = func(part bench.Part, takes time.Duration) { progress.Say("%s, for %s ...", part, short(takes)) }
	report := bench.Run(ctx, clients, f.Settings)
	progress.End()
	code := exitOK
	if len(report.Failures) > 0 {
		code = exitDiffers
	}
	a.printBench(f, where, begun, report, code)
	return exit(code)
}

// openBench connects twice, as two hosts would, and tries a lock: what fails then would fail always. With
// Guard it may have to wait until servers that are new grant any.
func (a *app) openBench(ctx context.Context, f *benchFlags) (clients bench.Clients, at surroundings, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.timeout)
	defer cancel()
	cfg := client.Config{Prefix: f.ownPrefix, Lease: f.Lease, Guard: f.guard, Replicas: f.replicas,
		Logger: slog.New(slog.DiscardHandler)}
	for i := 0; i < len(clients) && err == nil; i++ {
		clients[i], err = a.lockClient(ctx, f.quorum, cfg)
	}
	if err == nil {
		at, err = a.surroundings(ctx, f.where)
	}
	var lock *client.Lock
	if err == nil {
		lock, err = clients[0].Acquire(ctx, "probe")
	}
	if err == nil {
		err = lock.Release(ctx) // unlike Do it fails when nobody can say that the lock is free
	}
	if err != nil {
		clients.Close()
	}
	return clients, at, err
}

// surroundings say what was measured, for those who compare runs.
type surroundings struct {
	Deployment string   `json:"deployment"` // single, sentinel, cluster or quorum
	Addrs      []string `json:"addrs"`
	Servers    []string `json:"servers"` // each kind and version once, as "redis 8.2.1"
	Library    string   `json:"library"` // on the servers
	Client     string   `json:"client"`  // the version of this command's module
}

// surroundings looks on connections of its own.
func (a *app) surroundings(ctx context.Context, w where) (surroundings, error) {
	at := surroundings{Deployment: "single", Addrs: a.cfg.addrs, Client: thisBuild().Version}
	view, end, err := a.view(ctx, w)
	if err != nil {
		return at, err
	}
	defer end()
	_, sharded := view.Slot("")
	switch {
	case w.quorum:
		at.Deployment = "quorum"
	case a.cfg.master != "":
		at.Deployment = "sentinel"
	case sharded:
		at.Deployment = "cluster"
	}
	var libraries []string
	for _, node := range view.Nodes() { // one that does not answer adds nothing: what that means for locks is measured
		if said, err := locks.Hello(ctx, node); err == nil {
			at.Servers = append(at.Servers, printable(said["server"]+" "+said["version"]))
		}
		library, err := node.Do(ctx, node.B().Fcall().Function(functions.ReadVersion).Numkeys(0).Build()).ToString()
		if err == nil {
			libraries = append(libraries, printable(library))
		}
	}
	at.Servers = slices.Compact(slices.Sorted(slices.Values(at.Servers)))
	at.Library = strings.Join(slices.Compact(slices.Sorted(slices.Values(libraries))), ", ")
	return at, nil
}

func (at surroundings) String() string {
	return fmt.Sprintf("%s, %s, at %s, library %s", strings.Join(at.Servers, " and "), at.Deployment,
		strings.Join(at.Addrs, ","), at.Library)
}

func (a *app) printBench(f *benchFlags, at surroundings, begun time.Time, r bench.Report, code int) {
	if a.cfg.json {
		at.Servers = nonNil(at.Servers)
		a.printJSON(struct {
			head
			Begun time.Time `json:"begun"`
			surroundings
			Prefix   string  `json:"prefix"`  // with the random part
			Seconds  float64 `json:"seconds"` // as asked for
			Workers  int     `json:"workers"`
			Locks    int     `json:"locks"`
			LeaseMS  int64   `json:"lease_ms"`
			GuardMS  int64   `json:"guard_ms"`
			Replicas int     `json:"replicas"`
			bench.Report
		}{a.head(code), begun.UTC().Truncate(time.Second), at, f.ownPrefix, f.For.Seconds(), f.Workers, f.Locks(),
			f.Lease.Milliseconds(), f.guard.Milliseconds(), f.replicas, r})
	} else {
		fmt.Fprintln(a.stdout, at)
		benchTable(r, terminal.PainterFor(a.stdout)).Print(a.stdout)
		for _, line := range benchWords(f, r) {
			fmt.Fprintln(a.stdout, line)
		}
		a.printFailures(r)
	}
	if r.Interrupted {
		fmt.Fprintln(a.stderr, "holdfast bench: interrupted: this is what was measured until then")
	}
}

// benchTable has a line for each kind of call.
func benchTable(r bench.Report, paint terminal.Painter) *terminal.Table {
	table := &terminal.Table{Painter: paint}
	table.Head("PART", "CALL", "WORKERS", "COUNT", "PER SECOND", "P50 MS", "P95 MS", "P99 MS", "MAX MS", "ROUND TRIPS")
	row := func(part bench.Part, call string, workers int, count int64, rate float64, l bench.Latency, trips float64) {
		texts := []string{string(part), call, fmt.Sprint(workers), fmt.Sprint(count), fmt.Sprintf("%.0f", rate)}
		for _, v := range []float64{l.P50, l.P95, l.P99, l.Max} {
			texts = append(texts, fmt.Sprintf("%.3f", v))
		}
		if trips > 0 {
			texts = append(texts, fmt.Sprintf("%.2f", trips))
		} else {
			texts = append(texts, "-")
		}
		table.Row(terminal.Cells(texts...)...)
	}
	trips := func(part bench.Part, call string, t *bench.Trips) {
		if t != nil {
			row(part, call, t.Workers, t.Count, t.PerSecond, t.MS, t.RoundTrips)
		}
	}
	pairs := func(part bench.Part, p *bench.Pairs) {
		if p != nil {
			row(part, "acquire", p.Workers, p.Pairs, p.PairsPerSecond, p.AcquireMS, p.AcquireRoundTrips)
			row(part, "release", p.Workers, p.Pairs, p.PairsPerSecond, p.ReleaseMS, p.ReleaseRoundTrips)
		}
	}
	trips(bench.RoundTrip, "inspect", r.RoundTrip)
	pairs(bench.Alone, r.Alone)
	pairs(bench.Parallel, r.Parallel)
	if t := r.Contended; t != nil {
		row(bench.Contended, "wait", t.Workers, t.HandOffs, t.HandOffsPerSecond, t.WaitMS, 0)
		row(bench.Contended, "hand-off", t.Workers, t.HandOffs, t.HandOffsPerSecond, t.HandOffMS, t.HandOffRoundTrips)
	}
	trips(bench.Renewal, "renew", r.Renewal)
	return table
}

// benchWords say what the numbers mean, of each part that has some.
func benchWords(f *benchFlags, r bench.Report) []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.RoundTrip.Count > 0 {
		say("A call that only reads takes %.3f ms from here: a round trip.", r.RoundTrip.MS.P50)
	}
	if p := r.Alone; p != nil && p.Pairs > 0 {
		say("A lock that nobody else wants costs %.2f round trips to take and %.2f to give back.",
			p.AcquireRoundTrips, p.ReleaseRoundTrips)
	}
	if p := r.Parallel; p != nil && p.Pairs > 0 {
		say("%d workers with locks of their own take and give back %.0f per second.", p.Workers, p.PairsPerSecond)
	}
	if t := r.Contended; t != nil && t.HandOffs > 0 {
		say("A lock that %d workers want goes from one to the next %.0f times per second; each got it %d to %d times.",
			t.Workers, t.HandOffsPerSecond, t.ServedMin, t.ServedMax)
	}
	if t := r.Renewal; t != nil && t.Count > 0 {
		say("A renewal takes %.2f round trips; a lock that is held is renewed every %s.", t.RoundTrips, short(f.Lease/3))
	}
	return lines
}

func (a *app) printFailures(r bench.Report) {
	paint := terminal.PainterFor(a.stdout)
	for _, part := range bench.Parts() {
		for _, one := range r.Failures[part] {
			line := fmt.Sprintf("%s: %d calls failed: %s", part, one.Count, strings.ReplaceAll(one.Kind, "_", " "))
			fmt.Fprintf(a.stdout, "%s: %s\n", paint.Paint(terminal.Red, line), printable(one.First))
		}
	}
}
