package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/loader"
)

// nodeTimeout leaves time for the other nodes when one hangs: what the loader does takes up to four answers of each.
func (c *config) nodeTimeout() time.Duration {
	return min(loader.DefaultTimeout, c.timeout/4)
}

// work does the command for every deployment that the addresses stand for, and returns the exit code.
func work(ctx context.Context, cfg *config, out *output) int {
	deployments, err := deploymentsOf(ctx, cfg)
	out.problem(err)
	for _, option := range deployments {
		if option.ForceSingleClient && out.knows(option.InitAddress[0]) {
			continue // a replica of a server that came before
		}
		out.problem(one(ctx, cfg, out, option))
	}
	return out.code
}

// deploymentsOf sorts the addresses: all those of a cluster are one deployment, those of sentinels too; a single
// server is one of its own. The error joins those of addresses that are none.
func deploymentsOf(ctx context.Context, cfg *config) ([]rueidis.ClientOption, error) {
	if cfg.master != "" {
		return []rueidis.ClientOption{cfg.option(cfg.addrs...)}, nil
	}
	var deployments []rueidis.ClientOption
	var members []string
	var failed []error
	for _, addr := range cfg.addrs {
		mode, err := modeOf(ctx, cfg, addr)
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", addr, err))
		case mode == "cluster":
			members = append(members, addr)
		case mode == "sentinel":
			failed = append(failed, fmt.Errorf("%s: %w", addr, errSentinel))
		default:
			single := cfg.option(addr)
			single.ForceSingleClient = true // else the user would need +cluster|slots to be told that it is no cluster
			deployments = append(deployments, single)
		}
	}
	if len(members) > 0 {
		deployments = append(deployments, cfg.option(members...))
		// A cluster is found by any of its nodes; the others are seen through it.
		failed = slices.DeleteFunc(failed, func(err error) bool { return !errors.Is(err, errSentinel) })
	}
	return deployments, errors.Join(failed...)
}

var errSentinel = errors.New("this is a Sentinel: name the primary that it watches with --sentinel-master")

// modeOf asks what kind of server an address is: "standalone", "cluster" or "sentinel". HELLO needs no permission.
func modeOf(ctx context.Context, cfg *config, addr string) (string, error) {
	client, err := loader.Dialer(cfg.option(addr))(ctx, addr)
	if err != nil {
		return "", explainConnect(err)
	}
	defer client.Close()
	hello, err := client.Do(ctx, client.B().Arbitrary("HELLO").Build()).AsMap()
	if err != nil {
		return "", explainConnect(err)
	}
	mode := hello["mode"]
	return mode.ToString()
}

func explainConnect(err error) error {
	if reply, ok := rueidis.IsRedisErr(err); ok {
		return fmt.Errorf("connecting: %w (check --user and HOLDFAST_PASSWORD)", reply)
	}
	return fmt.Errorf("connecting: %w (check --addr, and --tls if the server wants it)", err)
}

// one does the command for one deployment.
func one(ctx context.Context, cfg *config, out *output, option rueidis.ClientOption) error {
	client, err := connect(ctx, option)
	if err != nil {
		return explainConnect(err)
	}
	defer client.Close()
	do := map[string]func(context.Context, rueidis.Client, loader.Options) (loader.Report, error){
		"load": loader.Load, "verify": loader.Verify, "version": loader.Verify, "unload": loader.Unload,
	}[cfg.command]
	_, err = do(ctx, client, loader.Options{
		DryRun:   cfg.dryRun,
		Force:    cfg.force,
		Timeout:  cfg.nodeTimeout(),
		Dial:     loader.Dialer(option),
		Progress: out.node,
	})
	return err
}

// connect does not wait longer than the context, which rueidis.NewClient does not take.
func connect(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	type connected struct {
		client rueidis.Client
		err    error
	}
	done := make(chan connected, 1)
	go func() {
		client, err := rueidis.NewClient(option)
		done <- connected{client, err}
	}()
	select {
	case c := <-done:
		return c.client, c.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
