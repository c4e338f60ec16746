// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/loader"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

const defaultPrefix = "lock:"

// meetEvery is how often a long look at a Cluster connects to primaries that are new: no call may lead there.
const meetEvery = 5 * time.Second

// where says which locks a command is about.
type where struct {
	prefix string
	quorum bool
}

func (w *where) bind(flags *pflag.FlagSet) {
	flags.StringVar(&w.prefix, "prefix", defaultPrefix, "`text` that the keys of the locks begin with; '' makes a name the whole key")
	flags.BoolVar(&w.quorum, "quorum", false, "the addresses are the servers of a quorum, all of them, in their order")
}

// view opens the deployment that has the locks, and returns what closes it. Unlike load, it is about
// one deployment: a lock's name says nothing of which.
func (a *app) view(ctx context.Context, w where) (*locks.View, func(), error) {
	if w.quorum {
		return a.quorum(ctx, w.prefix)
	}
	option, err := theDeployment(ctx, &a.cfg)
	if err != nil {
		return nil, nil, err
	}
	option.ClusterOption.ShardsRefreshInterval = meetEvery
	redis, _, err := a.cfg.reach(ctx, option)
	if err != nil {
		if redis != nil { // a replica: what it says may be old
			redis.Close()
		}
		return nil, nil, err
	}
	view, err := locks.Open(redis, w.prefix)
	if err != nil {
		redis.Close()
		return nil, nil, err
	}
	return view, func() { view.Close(); redis.Close() }, nil
}

// see lets do look at the locks, for as long as a command may take.
func (a *app) see(ctx context.Context, w where, do func(context.Context, *locks.View) error) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.timeout)
	defer cancel()
	view, end, err := a.view(ctx, w)
	if err != nil {
		return a.advise(err, "operator")
	}
	defer end()
	return a.advise(do(ctx, view), "operator")
}

// theDeployment is the only one that the addresses belong to. A server that is lost is told at once:
// rueidis would try again for as long as there is time. A replica may be named beside its
// primary; alone it is refused, because what it says may be old.
func theDeployment(ctx context.Context, cfg *config) (rueidis.ClientOption, error) {
	once := func(addrs ...string) rueidis.ClientOption {
		option := cfg.option(addrs...)
		option.DisableRetry = true
		return option
	}
	if cfg.master != "" {
		return once(cfg.addrs...), nil
	}
	there := look(ctx, cfg)
	failed := errorsOf(there.missed, func(string) bool { return false })
	switch refused := there.refused(); {
	case refused != nil:
		return rueidis.ClientOption{}, refused
	case len(there.clusters)+len(there.primaries) > 1, len(there.clusters) > 0 && len(there.replicas) > 0,
		there.stranger:
		return rueidis.ClientOption{}, usageError{errors.New("the addresses belong to several deployments: " +
			"name one, or add --quorum if they are the servers of a quorum")}
	case len(there.clusters) == 1:
		return once(there.clusters[0].addrs...), nil // found by any of its nodes
	case len(there.primaries) == 1:
		single := once(there.primaries[0])
		single.ForceSingleClient = true // else rueidis needs the right to CLUSTER SLOTS
		return single, nil
	case failed == nil:
		return rueidis.ClientOption{}, fmt.Errorf("%s: this is a replica: name its primary", there.replicas[0])
	}
	return rueidis.ClientOption{}, failed
}

// quorumOptions are the connections to the servers of a quorum.
func (a *app) quorumOptions() (options []rueidis.ClientOption, err error) {
	if a.cfg.master != "" {
		return nil, usageError{errors.New("--quorum and --sentinel-master exclude each other: name the servers")}
	}
	for _, addr := range a.cfg.addrs {
		single := a.cfg.option(addr)
		single.ForceSingleClient = true
		options = append(options, single)
	}
	return options, nil
}

// asTyped makes a usage error of what cannot be a quorum.
func asTyped(err error) error {
	if errors.Is(err, client.ErrArgument) {
		return usageError{errors.New(text(err))}
	}
	return err
}

// quorum opens the servers of a quorum. Those that do not answer are told on standard error: the
// others may be a majority. They are tried again, for a long look.
func (a *app) quorum(ctx context.Context, prefix string) (*locks.View, func(), error) {
	options, err := a.quorumOptions()
	if err != nil {
		return nil, nil, err
	}
	var answering []rueidis.Client
	closeAll := func() {
		for _, redis := range answering {
			redis.Close()
		}
	}
	var away []int
	for i, addr := range a.cfg.addrs {
		options[i].DisableRetry = true
		redis, err := loader.Dialer(options[i])(ctx, addr)
		if err != nil {
			fmt.Fprintf(a.stderr, "holdfast %s: %s: %v\n", a.cfg.command, addr, a.cfg.explainConnect(err))
			away = append(away, i)
			continue
		}
		answering = append(answering, redis)
	}
	view, err := locks.OpenQuorum(options, answering, prefix)
	if err != nil {
		closeAll()
		return nil, nil, asTyped(err)
	}
	ended, end := context.WithCancel(context.Background())
	for _, i := range away {
		go func() {
			for ended.Err() == nil {
				if redis, err := loader.Dialer(options[i])(ended, a.cfg.addrs[i]); err == nil {
					view.Add(redis)
					<-ended.Done()
					redis.Close()
					return
				}
				select {
				case <-time.After(meetEvery):
				case <-ended.Done():
				}
			}
		}()
	}
	return view, func() { end(); view.Close(); closeAll() }, nil
}

// lockClient opens a client that takes locks. Client-side caching tells it at once when one is broken.
func (a *app) lockClient(ctx context.Context, voting bool, cfg client.Config) (*client.Client, error) {
	if voting {
		options, err := a.quorumOptions()
		if err != nil {
			return nil, err
		}
		for i := range options {
			options[i].DisableCache = false
		}
		c, err := within(ctx, func() (*client.Client, error) { return quorum.Open(options, cfg) })
		return c, asTyped(err)
	}
	option, err := theDeployment(ctx, &a.cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnecting, err)
	}
	option.DisableCache = false
	return within(ctx, func() (*client.Client, error) { return client.Open(option, cfg) })
}
