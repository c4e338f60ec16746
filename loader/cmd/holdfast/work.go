// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/loader"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/sentinels"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

// nodeTimeout leaves time for the other nodes when one hangs: the loader needs up to four replies
// of each.
func (c *config) nodeTimeout() time.Duration {
	return min(loader.DefaultTimeout, c.timeout/4)
}

// deed is what the loader does at one deployment: Load, Verify or Unload.
type deed func(context.Context, rueidis.Client, loader.Options) (loader.Report, error)

// tend does it at every deployment that the addresses belong to. Where one refuses a change, none is changed.
func (a *app) tend(ctx context.Context, do deed) error {
	cfg := &a.cfg
	ctx, cancel := context.WithTimeout(ctx, cfg.timeout)
	defer cancel()
	deployments, missed := deploymentsOf(ctx, cfg)
	visit := func(out *output, dry bool) {
		for _, option := range deployments {
			if option.ForceSingleClient && out.knows(option.InitAddress[0]) {
				continue // a replica of a server that came before
			}
			out.problem(one(ctx, cfg, out, option, do, dry))
		}
	}
	out := &output{app: a}
	if len(deployments) > 1 && (cfg.command == "load" || cfg.command == "unload") {
		silent := *a
		silent.stdout, silent.stderr = &terminal.Output{Writer: io.Discard}, io.Discard
		rehearsal := &output{app: &silent}
		visit(rehearsal, true)
		out.held = rehearsal.refused()
	}
	visit(out, cfg.dryRun || out.held)
	out.problem(errorsOf(missed, out.knows))
	if cfg.command == "version" && !cfg.addrGiven && len(out.nodes) == 0 {
		out.code = exitOK // "holdfast version" on a machine without a server is not a failure
	}
	return out.finish()
}

// one does it at one deployment. Looking goes on at the replicas if the primary does not answer.
func one(ctx context.Context, cfg *config, out *output, option rueidis.ClientOption, do deed, dry bool) error {
	client, known, failed := cfg.reach(ctx, option)
	if client == nil {
		return failed
	}
	defer client.Close()
	if cfg.master == "" && !option.ForceSingleClient && client.Mode() != rueidis.ClientModeCluster {
		return errUnseen // rueidis goes on with one node
	}
	if failed != nil && cfg.command != "verify" && cfg.command != "version" {
		return failed
	}
	_, err := do(ctx, client, loader.Options{
		DryRun:   dry,
		Force:    cfg.force,
		Source:   cfg.chosen().source,
		Timeout:  cfg.nodeTimeout(),
		Dial:     loader.Dialer(option),
		Also:     known.Replicas,
		Progress: out.node,
	})
	return errors.Join(failed, err)
}

// reach connects to a deployment. Behind Sentinel it also returns what the sentinels know. If these
// answer and the primary that they name does not, the error says so, and the client, if any, is that
// of a replica.
func (c *config) reach(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, sentinels.Known, error) {
	ask := func(not string) sentinels.Known {
		asking, cancel := context.WithTimeout(ctx, c.nodeTimeout())
		defer cancel()
		return sentinels.Ask(asking, c.dialSentinel(option), c.addrs, c.master, not) // connect says why not
	}
	var known sentinels.Known
	if c.master != "" {
		known = ask("")
	}
	if known.Primary == "" {
		client, err := connect(ctx, option)
		if err != nil {
			return nil, known, fmt.Errorf("%s: %w", strings.Join(option.InitAddress, ","), c.explainConnect(err))
		}
		return client, known, nil
	}
	dial := loader.Dialer(option)
	primary, err := dial(ctx, known.Primary)
	if err != nil {
		// A sentinel that was cut off from the others over a failover names the primary of before.
		if later := ask(known.Primary); later.Primary != "" {
			known = later
			primary, err = dial(ctx, known.Primary)
		}
	}
	if err == nil {
		primary.Close()
		client, err := connect(ctx, option)
		if err == nil {
			return client, known, nil
		}
		return nil, known, c.explainConnect(err)
	}
	err = fmt.Errorf("%s: the primary that the sentinels name does not answer: %w", known.Primary, err)
	if _, replied := rueidis.IsRedisErr(errors.Unwrap(err)); replied {
		return nil, known, c.explainConnect(errors.Unwrap(err)) // a wrong password, which replicas want too
	}
	for _, r := range known.Replicas {
		if r.Down {
			continue
		}
		if client, err := dial(ctx, r.Addr); err == nil {
			return client, known, fmt.Errorf("%s: the primary that the sentinels name does not answer", known.Primary)
		}
	}
	return nil, known, err
}

// dialSentinel opens a client to one sentinel.
func (c *config) dialSentinel(option rueidis.ClientOption) sentinels.Dial {
	option.Username, option.Password = option.Sentinel.Username, option.Sentinel.Password
	return sentinels.Dial(loader.Dialer(option))
}

// connect does not wait longer than the context, which rueidis.NewClient does not take.
func connect(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	return within(ctx, func() (rueidis.Client, error) { return rueidis.NewClient(option) })
}

// errConnecting is that no server was found that has the lock.
var errConnecting = errors.New("no connection")

// within runs something for as long as the context says.
func within[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := do()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%w: %w", errConnecting, context.Cause(ctx))
	}
}
