package main

import (
	"context"
	_ "embed"
	"errors"
	"strconv"

	"github.com/redis/rueidis"
)

// capacitySource is the functions library of the capacity workloads.
//
//go:embed capacity.lua
var capacitySource string

const bareName = "bare functions"

// bareRival is the least that a lock as functions can cost: SET NX PX in one, GET and DEL in the
// other.
func bareRival() rival {
	return rival{
		Name:     bareName,
		Settings: "two functions, SET NX PX and GET + DEL: no fence, no line, no renewal; for the server's capacity only",
		Sends:    []string{"fcall"},
		Baseline: true,
		Bare:     true,
		Key:      sameKey,
		Open: func(_ context.Context, p place, u use) (locker, error) {
			c, err := rueidis.NewClient(p.option())
			if err != nil {
				return nil, err
			}
			return bareLocker{c, strconv.FormatInt(u.Lease.Milliseconds(), 10)}, nil
		},
	}
}

type bareLocker struct {
	redis rueidis.Client
	lease string
}

// bareOwner is as long as the owner strings of holdfast.
const bareOwner = "some-host:12345:0123456789abcdef:1"

func (b bareLocker) Lock(ctx context.Context, name string) (hold, error) { return b.TryLock(ctx, name) }

func (b bareLocker) TryLock(ctx context.Context, name string) (hold, error) {
	err := b.call(ctx, "bench_bare_acquire", name, bareOwner, b.lease)
	if rueidis.IsRedisNil(err) {
		return hold{}, errBusy
	}
	return hold{Unlock: func() error {
		return b.call(context.Background(), "bench_bare_release", name, bareOwner)
	}}, err
}

func (b bareLocker) call(ctx context.Context, function, name string, args ...string) error {
	return b.redis.Do(ctx, b.redis.B().Fcall().Function(function).Numkeys(1).Key(name).Arg(args...).Build()).Error()
}

func (b bareLocker) Close() { b.redis.Close() }

// loadBench loads capacitySource on all primaries.
func (s *site) loadBench(ctx context.Context) error {
	var errs error
	for _, n := range s.primaries {
		_, err := n.Do(ctx, "FUNCTION", "LOAD", "REPLACE", capacitySource)
		errs = errors.Join(errs, err)
	}
	return errs
}
