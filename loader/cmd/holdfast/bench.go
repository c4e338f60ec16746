package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/client"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/bench"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

const (
	benchPrefix  = "holdfast-bench:"
	benchFor     = 10 * time.Second
	benchWorkers = 16
	benchEach    = 16 // locks of a worker
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
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Flags().Changed("locks")); err != nil {
				return usageError{err}
			}
			return a.bench(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&f.For, "for", benchFor, "`duration` of all parts together")
	flags.IntVar(&f.Workers, "workers", benchWorkers, "`number` of those who call at a time")
	flags.IntVar(&f.Locks, "locks", 0, fmt.Sprintf("`number` of names that are taken by turns (default %d for each worker)", benchEach))
	flags.StringSliceVar(&f.only, "only", nil, "measure only these `parts`, and the round trip: alone, parallel, contended, renewal")
	flags.DurationVar(&f.Lease, "lease", benchLease, "`duration` of the leases")
	flags.IntVar(&f.replicas, "replicas", 0, "this `number` of replicas must have each lock too")
	flags.DurationVar(&f.guard, "guard", 0, "as Config.Guard: the `duration` that a server must remember; at least the lease")
	flags.StringVar(&f.prefix, "prefix", benchPrefix, "`text` that the keys begin with; a random part follows")
	flags.BoolVar(&f.quorum, "quorum", false, "the addresses are the servers of a quorum, all of them, in their order")
	var names []string
	for _, part := range bench.Parts() {
		names = append(names, string(part))
	}
	_ = cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// check wants settings that can be measured, and completes them.
func (f *benchFlags) check(locksGiven bool) error {
	if !locksGiven {
		f.Locks = benchEach * f.Workers
	}
	switch {
	case f.For <= 0:
		return errors.New("--for must be positive")
	case f.Workers < bench.MinWorkers || f.Workers > bench.MaxWorkers:
		return fmt.Errorf("--workers must be from %d to %d, not %d", bench.MinWorkers, bench.MaxWorkers, f.Workers)
	case f.Locks < f.Workers || f.Locks > bench.MaxLocks:
		return fmt.Errorf("--locks must be from %d, one for each worker, to %d, not %d", f.Workers, bench.MaxLocks, f.Locks)
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
	f.ownPrefix, f.Grace = f.prefix+randomPart(), a.cfg.nodeTimeout()
	progress := terminal.Watch(a.stderr)
	defer progress.End()
	progress.Say("connecting ...")
	clients, where, err := a.openBench(ctx, f)
	if err != nil {
		return f.explain(err)
	}
	defer clients[0].Close()
	defer clients[1].Close()
	begun := time.Now()
	f.Say = func(part bench.Part, takes time.Duration) { progress.Say("%s, for %s ...", part, short(takes)) }
	report := bench.Run(ctx, clients, f.Settings)
	progress.End()
	code := exitOK
	if report.Failed() {
		code = exitDiffers
	}
	a.printBench(f, where, begun, report, code)
	if code != exitOK {
		return exit(code)
	}
	return nil
}

// randomPart keeps two runs apart.
func randomPart() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return hex.EncodeToString(random[:]) + ":"
}

// openBench connects twice, as two hosts would, and tries a lock: what fails then would fail always. With
// Guard it may have to wait until servers that are new grant any.
func (a *app) openBench(ctx context.Context, f *benchFlags) (clients bench.Clients, at surroundings, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.timeout)
	defer cancel()
	cfg := client.Config{Prefix: f.ownPrefix, Lease: f.Lease, Guard: f.guard, Replicas: f.replicas,
		Logger: slog.New(slog.DiscardHandler)}
	for i := range clients {
		clients[i], err = a.lockClient(ctx, f.quorum, cfg, func(o *rueidis.ClientOption) { o.DisableCache = false })
		if err != nil {
			break
		}
	}
	if err == nil {
		at, err = a.surroundings(ctx, f.quorum, clients[0])
	}
	if err == nil {
		err = a.probe(ctx, f, clients[0])
	}
	if err != nil {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
	}
	return clients, at, err
}

// probe takes a lock and gives it back. Unlike Do it fails when nobody can say that the lock is free.
func (a *app) probe(ctx context.Context, f *benchFlags, c *client.Client) error {
	lock, err := c.Acquire(ctx, "probe")
	if err != nil {
		return err
	}
	if err = lock.Release(ctx); err != nil {
		a.sayLeft(f, 1)
	}
	return err
}

// explain adds what can be done about an error.
func (f *benchFlags) explain(err error) error {
	var usage usageError
	switch {
	case errors.As(err, &usage):
		return usage
	case errors.Is(err, client.ErrLibrary):
		return fmt.Errorf("%w (\"holdfast load\" brings the library)", err)
	case errors.Is(err, client.ErrDenied), strings.Contains(err.Error(), "NOPERM"):
		return fmt.Errorf("%w (\"holdfast acl --for client --prefix %s\" prints the rights that it takes)",
			err, shellQuoted(f.prefix))
	}
	return err
}
