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
		"RenewEvery": {{RenewEvery: -1}, {RenewEvery: 30 * time.Second}, {Lease: time.Second, RenewEvery: time.Second},
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
		"RenewEvery":  {client.WithRenewal(time.Hour)},
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
