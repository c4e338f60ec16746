// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestNewOverTheCallersOwnClient(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, err := client.New(e.Redis, client.Config{Lease: testbed.Long, RenewEvery: 50 * time.Millisecond})
		require.NoError(t, err)
		defer c.Close()
		require.True(t, c.Redis() == e.Redis)
		name := e.Prefix + "a"
		e.Prefix = "lock:" // the default
		other := e.open(client.Config{Lease: testbed.Long})
		require.NoError(t, other.Redis().Do(e.Ctx, other.Redis().B().Ping().Build()).Error())
		l := e.Take(c, name)
		e.Renewals(name, 3)
		for _, next := range []*client.Client{other, c} {
			waiting := e.Acquire(e.Ctx, next, name)
			e.Line(c, name, 1)
			e.Release(l)
			l = e.Locked(waiting).Lock
		}
		e.Release(l)
		_, err = client.New(nil, client.Config{})
		require.ErrorIs(t, err, client.ErrArgument)
	})
}
