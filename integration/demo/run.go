package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	_ "github.com/holdfast-go/holdfast/integration/server/container" // servers may be containers
	"github.com/holdfast-go/holdfast/loader"
)

// The four sales, in order.
var sales = []plan{
	{name: "no lock"},
	{name: "Holdfast", locked: true},
	{name: "Holdfast, holder killed", locked: true, incident: killed},
	{name: "Holdfast, holder paused", locked: true, incident: paused},
}

// run holds the sales and checks what came of them. It cleans up in any case.
func run(ctx context.Context, s size, out *display) (err error) {
	if err := s.check(); err != nil {
		return err
	}
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
		out.say("library %s %s at %s", node.After, node.Action, node.Addr)
	}

	// One prefix for all keys of this run; the hash tag keeps a sale in one slot.
	prefix := "{holdfast-demo-" + rand.Text()[:10] + "}:"
	locks, err := client.New(redis, client.Config{Prefix: prefix})
	if err != nil {
		return err
	}
	defer locks.Close()

	results := make([]result, len(sales))
	for i, plan := range sales {
		shop := newShop(redis, prefix, fmt.Sprintf("sale%d", i+1))
		one := &sale{plan: plan, size: s, shop: shop, locks: locks, out: out,
			job: job{Redis: addressOf(option), Prefix: prefix, Sale: shop.name, Locked: plan.locked, Lease: s.Lease}}
		results[i], err = one.hold(ctx)
		err = errors.Join(err, shop.close())
		if err != nil {
			return fmt.Errorf("%s: %w", plan.name, err)
		}
	}
	out.table(results)
	ok := out.claims(results)
	out.say("%.1f s in all", time.Since(started).Seconds())
	if !ok {
		return errClaim
	}
	return nil
}
