// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/loader"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/sentinels"
)

// nodeTimeout leaves time for the other nodes when one hangs: the loader needs up to four replies
// of each.
func (c *config) nodeTimeout() time.Duration {
	return min(loader.DefaultTimeout, c.timeout/4)
}

// deed is what the loader does at one deployment: Load, Verify or Unload.
type deed func(context.Context, rueidis.Client, loader.Options) (loader.Report, error)

// tend does it at every deployment that the addresses belong to.
func (a *app) tend(ctx context.Context, do deed) error {
	cfg := &a.cfg
	ctx, cancel := context.WithTimeout(ctx, cfg.timeout)
	defer cancel()
	out := &output{app: a}
	deployments, err := deploymentsOf(ctx, cfg)
	out.problem(err)
	for _, option := range deployments {
		if option.ForceSingleClient && out.knows(option.InitAddress[0]) {
			continue // a replica of a server that came before
		}
		out.problem(one(ctx, cfg, out, option, do))
	}
	if cfg.command == "version" && !cfg.addrGiven && len(out.nodes) == 0 {
		out.code = exitOK // "holdfast version" on a machine without a server is not a failure
	}
	out.finish(out.code)
	return exit(out.code)
}

// deploymentsOf sorts the addresses. All cluster nodes are one deployment, and so are all
// sentinels. A single server is one of its own. The error joins those of the addresses that are
// none.
func deploymentsOf(ctx context.Context, cfg *config) ([]rueidis.ClientOption, error) {
	if cfg.master != "" {
		return []rueidis.ClientOption{cfg.option(cfg.addrs...)}, nil
	}
	there := look(ctx, cfg)
	var deployments []rueidis.ClientOption
	for _, addr := range slices.Concat(there.primaries, there.replicas) {
		single := cfg.option(addr)
		single.ForceSingleClient = true // else rueidis needs the right to CLUSTER SLOTS
		deployments = append(deployments, single)
	}
	if len(there.members) > 0 {
		deployments = append(deployments, cfg.option(there.members...))
		// A cluster is found by any of its nodes; the others are seen through it.
		there.failed = slices.DeleteFunc(there.failed, func(err error) bool { return !errors.Is(err, errSentinel) })
	}
	return deployments, errors.Join(there.failed...)
}

// servers are the addresses by what is there.
type servers struct {
	members, primaries, replicas []string // nodes of a Cluster, and others
	failed                       []error  // of those that are nothing of that
}

// look asks each address once.
func look(ctx context.Context, cfg *config) (there servers) {
	for i, addr := range cfg.addrs {
		if slices.Contains(cfg.addrs[:i], addr) {
			continue // the shell's completion reads flags twice
		}
		said, err := greet(ctx, cfg, addr)
		switch mode := said["mode"]; {
		case err != nil:
			there.failed = append(there.failed, fmt.Errorf("%s: %w", addr, err))
		case mode == "sentinel":
			there.failed = append(there.failed, fmt.Errorf("%s: %w", addr, errSentinel))
		case mode == "cluster":
			there.members = append(there.members, addr)
		case said["role"] != "master":
			there.replicas = append(there.replicas, addr)
		default:
			there.primaries = append(there.primaries, addr)
		}
	}
	return there
}

var errSentinel = errors.New("this is a Sentinel: name the primary that it watches with --sentinel-master")

// greet asks what is at an address.
func greet(ctx context.Context, cfg *config, addr string) (map[string]string, error) {
	client, err := within(ctx, func() (rueidis.Client, error) { return loader.Dialer(cfg.option(addr))(ctx, addr) })
	if err != nil {
		return nil, cfg.explainConnect(err)
	}
	defer client.Close()
	said, err := locks.Hello(ctx, client)
	if err != nil {
		return nil, cfg.explainConnect(err)
	}
	return said, nil
}

// explainConnect adds to the error of a connection what can be done about it. A sentinel's reply
// cannot be told from a server's here.
func (c *config) explainConnect(err error) error {
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		hint := "check --addr, and --tls if the server wants it"
		if dialing := (*net.OpError)(nil); errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &dialing) {
			hint = "it takes connections and does not answer: it hangs, or wants --tls"
			if c.tls != nil {
				hint = "it takes connections and does not answer: it hangs, or has no TLS"
			}
		}
		return fmt.Errorf("connecting: %w (%s)", err, hint)
	}
	who := "--user and HOLDFAST_PASSWORD"
	if c.master != "" {
		who += ", at the sentinels --sentinel-user and HOLDFAST_SENTINEL_PASSWORD"
	}
	text := reply.Error()
	switch {
	case strings.HasPrefix(text, "WRONGPASS"):
		return fmt.Errorf("wrong user or password: %w (check %s)", reply, who)
	case strings.HasPrefix(text, "NOAUTH") && c.password == "":
		return fmt.Errorf("the server wants a password: %w (set %s)", reply, who)
	case strings.HasPrefix(text, "NOAUTH"):
		return fmt.Errorf("wrong password: %w (check %s)", reply, who)
	}
	return fmt.Errorf("connecting: %w (check %s)", reply, who)
}

// one does it at one deployment. Looking goes on at the replicas if the primary does not answer.
func one(ctx context.Context, cfg *config, out *output, option rueidis.ClientOption, do deed) error {
	if cfg.command == "load" && cfg.master == "" && !option.ForceSingleClient {
		cfg.awaitSlots(ctx, option)
	}
	client, known, failed := cfg.reach(ctx, option)
	if client == nil {
		return failed
	}
	defer client.Close()
	if failed != nil && cfg.command != "verify" && cfg.command != "version" {
		return failed
	}
	_, err := do(ctx, client, loader.Options{
		DryRun:   cfg.dryRun,
		Force:    cfg.force,
		Source:   cfg.chosen().source,
		Timeout:  cfg.nodeTimeout(),
		Dial:     loader.Dialer(option),
		Also:     known.Replicas,
		Progress: out.node,
	})
	return errors.Join(failed, err)
}

// awaitSlots gives a Cluster that is being made half of the time: until it has given all slots to nodes, none of its
// nodes knows all others. What else is wrong, reach says.
func (c *config) awaitSlots(ctx context.Context, option rueidis.ClientOption) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout/2)
	defer cancel()
	for ctx.Err() == nil {
		client, err := connect(ctx, option)
		if err != nil {
			return
		}
		nodes, err := cluster.Topology(ctx, client)
		client.Close()
		var refused *rueidis.RedisError
		if errors.As(err, &refused) || slotsOf(nodes) == cluster.Slots {
			return
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
	}
}

// lookAgain is between two looks at a Cluster that is being made.
const lookAgain = 100 * time.Millisecond

func slotsOf(nodes []cluster.Node) (slots int) {
	for _, n := range nodes {
		for _, r := range n.Slots {
			slots += int(r[1]) - int(r[0]) + 1
		}
	}
	return slots
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
