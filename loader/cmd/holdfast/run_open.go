package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
)

// errConnecting is that no server was found that has the lock.
var errConnecting = errors.New("no connection")

// open connects to the server.
func (j *job) open(ctx context.Context) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, j.cfg.timeout)
	defer cancel()
	return j.lockClient(ctx, j.flags.quorum, j.flags.config(j.app), nil)
}

// lockClient opens a client that takes locks. adapt, if not nil, changes how it connects.
func (a *app) lockClient(ctx context.Context, voting bool, cfg client.Config, adapt func(*rueidis.ClientOption)) (
	*client.Client, error) {
	if adapt == nil {
		adapt = func(*rueidis.ClientOption) {}
	}
	if voting {
		if a.cfg.master != "" {
			return nil, usageError{errors.New("--quorum and --sentinel-master exclude each other: name the servers")}
		}
		var options []rueidis.ClientOption
		for _, addr := range a.cfg.addrs {
			single := a.cfg.option(addr)
			single.ForceSingleClient = true
			adapt(&single)
			options = append(options, single)
		}
		return within(ctx, func() (*client.Client, error) { return quorum.Open(options, cfg) })
	}
	option, err := theDeployment(ctx, &a.cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnecting, err)
	}
	adapt(&option)
	return within(ctx, func() (*client.Client, error) { return client.Open(option, cfg) })
}

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
