// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// The key keeps a lock from others until MinHold is over, to the millisecond, whatever becomes of the
// process that had it, and of the server's primary.
func TestTheKeyKeepsTheMinimum(t *testing.T) {
	const minHold = 2 * time.Minute
	silent := redis.Path{Host: "client"}
	type end func(t *testing.T, w *redis.World, n *redis.Node, l *client.Lock)
	unheard := func(way redis.Direction) end {
		return func(t *testing.T, w *redis.World, _ *redis.Node, l *client.Lock) {
			w.Stall(silent, way)
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.ErrorIs(t, l.Release(short), client.ErrUnreachable)
			if way == redis.ToClient {
				w.Resume(silent) // it is released again
			}
		}
	}
	ends := map[string]end{
		"released": func(t *testing.T, _ *redis.World, _ *redis.Node, l *client.Lock) { require.NoError(t, l.Release(ctx)) },
		"the process dies": func(_ *testing.T, w *redis.World, _ *redis.Node, _ *client.Lock) {
			w.Stall(silent, redis.Both)
		},
		"the server does not hear of the release": unheard(redis.Both),
		"the answer to the release is lost":       unheard(redis.ToClient),
		"the library is loaded again": func(t *testing.T, _ *redis.World, n *redis.Node, l *client.Lock) {
			require.NoError(t, l.Release(ctx))
			bed.Load(t, n)
		},
	}
	for _, handedOver := range []bool{false, true} {
		t.Run(fmt.Sprint("after a wait: ", handedOver), func(t *testing.T) {
			bed.Each(t, ends, func(t *testing.T, w *redis.World, end end) {
				n := bed.Loaded(t, w, "a:1")
				c, other := open(t, w, "client", "a:1"), open(t, w, "other", "a:1")
				defer w.Resume(silent)
				if handedOver {
					before := bed.Must(other.Acquire(ctx, "x"))
					time.AfterFunc(time.Second, func() { _ = before.Release(ctx) })
				}
				l := bed.Must(c.Acquire(ctx, "x", client.WithMinHold(minHold)))
				granted := time.UnixMicro(l.Fence())
				time.Sleep(time.Second)
				end(t, w, n, l)
				next := bed.Must(other.Acquire(ctx, "x"))
				kept := time.UnixMicro(next.Fence()).Sub(granted)
				require.GreaterOrEqual(t, kept, minHold)
				require.Less(t, kept, minHold+50*time.Millisecond)
			})
		})
	}
}
