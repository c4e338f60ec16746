// SPDX-License-Identifier: Apache-2.0

// Command demo is a flash sale on a real server, by several processes: first
// without a lock, which oversells, then with Holdfast, which does not; also
// when a process is killed while it holds the lock, and when one is paused, and
// comes back to write what is long out of date. "make demo" runs it.
//
// It ends with a table and with what it claims, each claim checked: the exit
// status is 0 only if all of them are true.
//
// The server is the one at HOLDFAST_REDIS, or one that is started for the demo
// and removed afterwards: see package server. At HOLDFAST_REDIS it leaves
// nothing behind but the functions library.
//
// Where to read: worker.go is what a shop would write, with shop.go as its
// database; sale.go starts the processes, and kills and pauses one of them.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

// How big the sales are.
const (
	stock     = 300 // to sell; the one that is killed or paused waits in line behind all the others
	buyers    = 450 // who want one
	processes = 6   // that serve them, besides the one that is killed or paused
)

func main() {
	reexec.Main(map[string]reexec.Role{workerRole: work})
	lease := flag.Duration("lease", time.Second, "lease of the lock")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *lease)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "demo: interrupted")
		os.Exit(130)
	case errors.Is(err, errClaim):
		os.Exit(1) // it has been said which
	case err != nil:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// The four sales, in order.
var sales = []plan{
	{name: "no lock"},
	{name: "Holdfast", locked: true},
	{name: "Holdfast, holder killed", locked: true, incident: syscall.SIGKILL},
	{name: "Holdfast, holder paused", locked: true, incident: syscall.SIGSTOP},
}

// run holds the sales and checks what came of them. It cleans up in any case.
func run(ctx context.Context, lease time.Duration) (err error) {
	started := time.Now()
	deployment, err := server.Start(ctx, server.Spec{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, deployment.Close()) }()

	option := deployment.ClientOption()
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", option.InitAddress[0], err)
	}
	defer redis.Close()
	report, err := loader.Load(ctx, redis, loader.Options{})
	if err != nil {
		return fmt.Errorf("load the functions library: %w", err)
	}
	for _, node := range report.Nodes {
		say("library %s %s at %s", node.After, node.Action, node.Addr)
	}

	// One prefix for all keys of this run; the hash tag keeps a sale in one slot.
	prefix := "{holdfast-demo-" + rand.Text()[:10] + "}:"
	locks, err := client.New(redis, client.Config{Prefix: prefix})
	if err != nil {
		return err
	}
	defer locks.Close()

	var results []result
	for i, plan := range sales {
		name := fmt.Sprintf("sale%d", i+1)
		one := &sale{result: result{plan: plan}, shop: newShop(redis, prefix, name), locks: locks,
			job: job{URL: urlOf(option), Prefix: prefix, Sale: name, Locked: plan.locked, Lease: lease}}
		err := one.hold(ctx)
		if err = errors.Join(err, one.shop.close()); err != nil {
			return fmt.Errorf("%s: %w", plan.name, err)
		}
		results = append(results, one.result)
	}
	table(results)
	ok := claims(results)
	say("%.1f s in all", time.Since(started).Seconds())
	if !ok {
		return errClaim
	}
	return nil
}
