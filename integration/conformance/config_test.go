// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestABadConfigNamesItsField(t *testing.T) {
	e := lay(t, testbed.Share(t, server.Spec{}))
	year := 366 * 24 * time.Hour
	for field, configs := range map[string][]client.Config{
		"Prefix":  {{Prefix: "a{b"}, {Prefix: "a{}b"}, {Prefix: "a\n"}, {Prefix: strings.Repeat("x", 480)}},
		"Lease":   {{Lease: -1}, {Lease: 9 * time.Millisecond}, {Lease: year}},
		"MaxWait": {{MaxWait: -1}},
		"RenewEvery": {{RenewEvery: -1}, {RenewEvery: 10}, {RenewEvery: 30 * time.Second}, {Lease: time.Second, RenewEvery: time.Second},
			{Lease: time.Second, RenewEvery: 990 * time.Millisecond}, {Lease: 10 * time.Millisecond, RenewEvery: 8 * time.Millisecond}},
		"MinHold":     {{MinHold: -1}, {MinHold: year}},
		"MaxRenewals": {{MaxRenewals: -1}},
		"MaxHold":     {{MaxHold: -1}},
		"Grace":       {{Grace: -1}},
		"Label":       {{Label: strings.Repeat("x", 129)}},
	} {
		for _, cfg := range configs {
			_, err := client.New(e.Redis, cfg)
			require.ErrorIs(t, err, client.ErrArgument, field)
			require.Contains(t, err.Error(), field)
			_, err = client.Open(e.D.ClientOption(), cfg)
			require.ErrorIs(t, err, client.ErrArgument, field)
		}
	}
	_, err := client.New(nil, client.Config{})
	require.ErrorIs(t, err, client.ErrArgument)
	c := e.open(client.Config{})
	long := strings.Repeat("x", 513)
	for field, opts := range map[string][]client.Option{
		"Lease":       {client.WithLease(0)},
		"MaxWait":     {client.WithMaxWait(-1)},
		"tries":       {client.WithPolling(-1, time.Second)},
		"interval":    {client.WithPolling(1, 0)},
		"RenewEvery":  {client.WithRenewal(time.Hour), client.WithRenewal(time.Millisecond - 1)},
		"MinHold":     {client.WithMinHold(-1)},
		"MaxRenewals": {client.WithMaxRenewals(-1)},
		"MaxHold":     {client.WithMaxHold(-1, 0)},
		"Grace":       {client.WithMaxHold(1, -1)},
		"Label":       {client.WithLabel(long), client.WithOptions(client.WithOwner("job"), client.WithLabel("beside an owner"))},
		"Owner":       {client.WithOwner(long), client.WithOwner("")},
		"Guard must":  {client.WithGuard(30*time.Second - 1), client.WithGuard(-1), client.WithGuard(1 << 62)},
	} {
		for _, opt := range opts {
			_, err := c.TryAcquire(e.Ctx, "a", opt, nil)
			only(t, client.ErrInvalid, err, field)
			require.ErrorIs(t, err, client.ErrArgument, field)
			require.Contains(t, err.Error(), field)
			_, err = c.Acquire(e.Ctx, "a", opt)
			require.ErrorIs(t, err, client.ErrArgument, field)
			require.Contains(t, err.Error(), `"a"`)
			_, err = c.Acquire(e.Ctx, "", client.WithOptions())
			require.ErrorIs(t, err, client.ErrArgument)
			require.ErrorContains(t, err, "name")
		}
	}
	require.False(t, e.Exists("a"))
	e.Release(e.Take(c, "a", client.WithLease(10*time.Millisecond+time.Hour), client.WithLabel(strings.Repeat("x", 128))))
}

// replicas is how many each primary has.
func (e *env) replicas() int {
	primaries, err := e.D.Primaries(e.Ctx)
	require.NoError(e.TB, err)
	return len(e.D.Nodes())/len(primaries) - 1
}

// One replica is asked for that does not exist: nobody gets the lock, and nothing of it is left.
func TestTooFewReplicas(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, e *env) {
		level := client.WithReplicas(e.replicas()+1, 50*time.Millisecond)
		c, other := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
		free := func() {
			e.Eventually("it is given back", func() bool { return !e.inspect(other, "x").Held })
		}
		_, err := c.TryAcquire(e.Ctx, "x", level)
		require.ErrorIs(t, err, client.ErrNotReplicated)
		only(t, client.ErrUnreachable, err)
		free()
		_, err = c.TryAcquire(e.Ctx, "x", level, client.WithOwner("job"))
		require.ErrorIs(t, err, client.ErrNotReplicated)
		free()
		_, err = c.Acquire(e.Ctx, "x", level)
		require.ErrorIs(t, err, client.ErrNotReplicated)
		only(t, client.ErrUnreachable, err)
		free()

		l := e.Take(other, "x")
		waiting := e.Acquire(e.Ctx, c, "x", level, client.WithMaxWait(5*time.Second))
		e.Line(other, "x", 1)
		e.Release(l)
		err = (<-waiting).Err
		require.ErrorIs(t, err, client.ErrNotReplicated, "what a message gives is confirmed first")
		only(t, client.ErrUnreachable, err)
		free()
	})
}

// A renewal that too few replicas have does not count.
func TestARenewalOfTooFewReplicasDoesNotCount(t *testing.T) {
	t.Parallel()
	d := server.Replicated(t, 1, server.Owned())
	d.Load(t)
	e := lay(t, d)
	c := e.open(client.Config{Lease: 20 * time.Second, Replicas: 1, ReplicaWait: 3 * time.Second})
	l := e.Take(c, "x")
	require.NoError(t, l.Renew(e.Ctx))
	require.NoError(t, d.Nodes()[1].Kill())
	require.ErrorIs(t, l.Renew(e.Ctx), client.ErrNotReplicated)
	require.NoError(t, l.Context().Err(), "the lease that the replica had goes on")
	require.ErrorIs(t, e.Ended(l.Context()), client.ErrExpired)
}
