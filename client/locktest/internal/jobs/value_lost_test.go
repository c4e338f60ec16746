// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// A value that comes late to the server is kept for longer by as much, and one that comes after the lease not at all.
func TestAValueComesLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		a, b := s.Client(client.Config{Lease: 10 * time.Second}), s.Client(client.Config{})
		get := func(c *client.Client, mine string, late time.Duration) string {
			value, err := c.OnceValue(ctx, "token", time.Minute, func(context.Context) ([]byte, error) {
				if late > 0 {
					s.Cut(c)
					time.AfterFunc(late, func() { s.Restore(c) })
				}
				return []byte(mine), nil
			})
			require.NoError(t, err)
			return string(value)
		}
		require.Equal(t, "1", get(a, "1", 5*time.Second))
		time.Sleep(time.Minute - time.Second)
		require.Equal(t, "1", get(b, "2", 0), "4 s after its interval")
		time.Sleep(2 * time.Second)
		require.Equal(t, "3", get(a, "3", 11*time.Second))
		require.Equal(t, "4", get(b, "4", 0))
	})
}

// A value is gone with its key. Clients that remember it have it until its end, and the next call that asks the server
// makes another: with a guard when that is over, if the server may have forgotten more than the value.
func TestAValueIsLostWithItsKey(t *testing.T) {
	t.Parallel()
	const guard = 40 * time.Second
	for name, lost := range map[string]struct {
		by      func(s *locktest.Server)
		forgets bool
	}{
		"deleted":  {func(s *locktest.Server) { s.Delete("token") }, false},
		"failover": {func(s *locktest.Server) { s.Failover("token") }, true},
		"restart":  {func(s *locktest.Server) { s.Forget() }, true},
	} {
		for _, guarded := range []time.Duration{0, guard} {
			t.Run(fmt.Sprint(name, " with a guard of ", guarded), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *locktest.Server) {
					cfg := client.Config{Guard: guarded}
					a, b := s.Client(cfg), s.Client(cfg)
					get := func(c *client.Client, mine, want string, opts ...client.Option) {
						fn := func(context.Context) ([]byte, error) { return []byte(mine), nil }
						value, err := c.OnceValue(ctx, "token", time.Hour, fn, opts...)
						require.NoError(t, err)
						require.Equal(t, want, string(value))
					}
					spend(t, 0, time.Second, func() { get(a, "1", "1") }) // the server is old from the start
					time.Sleep(2 * guard)
					lost.by(s)
					time.Sleep(time.Second) // connections are made anew
					get(a, "2", "1")
					pause := time.Duration(0)
					if lost.forgets {
						pause = guarded
					}
					spend(t, pause, pause+2*time.Second, func() { get(b, "2", "2") })
					get(a, "3", "1")
					get(a, "3", "2", client.WithFreshAnswer())
				})
			})
		}
	}
}
