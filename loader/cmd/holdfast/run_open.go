package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
)

// errConnecting is that no server was found that has the lock.
var errConnecting = errors.New("no connection")

// open connects to the server.
func (j *job) open(ctx context.Context) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, j.cfg.timeout)
	defer cancel()
	cfg := j.flags.config(j.app)
	if j.flags.quorum {
		if j.cfg.master != "" {
			return nil, usageError{errors.New("--quorum and --sentinel-master exclude each other: name the servers")}
		}
		var options []rueidis.ClientOption
		for _, addr := range j.cfg.addrs {
			single := j.cfg.option(addr)
			single.ForceSingleClient = true
			options = append(options, single)
		}
		return within(ctx, func() (*client.Client, error) { return client.OpenQuorum(options, cfg) })
	}
	option, err := theDeployment(ctx, &j.cfg)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errConnecting, err)
	}
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
