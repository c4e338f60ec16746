// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
)

// What docs/migrating.md says: one service after the other moves from another library to Holdfast,
// over the same keys. While both are there, each keeps the other out, whoever is first, and nobody's
// release takes the other's lock away.
func TestServicesMoveOneAtATime(t *testing.T) {
	d := server.Single(t)
	d.Load(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, from := range []rival{setnxRival(), redsyncRival(), redsyncRueidisRival(), bsmRival(), rueidislockRival()} {
		t.Run(from.Name, func(t *testing.T) {
			theirs, err := from.Open(place{Addrs: d.Addrs()}, 10*time.Second)
			require.NoError(t, err)
			defer theirs.Close()
			ours, err := client.Open(d.ClientOption(), client.Config{NoPrefix: true, Prefix: "holdfast:"})
			require.NoError(t, err)
			defer ours.Close()
			const name = "order:42"
			key := name
			if from.Name == "rueidislock" {
				key = "rueidislock:0:" + name
			}

			// They have it.
			theirHold, err := theirs.TryLock(ctx, name)
			require.NoError(t, err)
			_, err = ours.TryAcquire(ctx, key)
			require.ErrorIs(t, err, client.ErrBusy)
			waiting := make(chan *client.Lock)
			go func() {
				l, err := ours.Acquire(ctx, key)
				if err != nil {
					t.Error(err)
				}
				waiting <- l
			}()
			info, err := ours.Inspect(ctx, key)
			require.NoError(t, err)
			require.True(t, info.Held)
			require.NoError(t, theirHold.Unlock())
			l := <-waiting // by polling: a plain string has no line
			require.NotNil(t, l)

			// We have it.
			if from.Baseline { // it does not look before it deletes
				require.NoError(t, l.Release(ctx))
				return
			}
			_, err = theirs.TryLock(ctx, name)
			require.Error(t, err)
			t.Logf("refused with: %v", err)
			require.NoError(t, l.Context().Err())
			_ = theirHold.Unlock() // a second time, as after a lost reply
			require.NoError(t, l.Renew(ctx), "their release has left our lock alone")
			soon, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			_, err = theirs.Lock(soon, name)
			cancel()
			require.Error(t, err)
			require.NoError(t, l.Release(ctx))
			theirHold, err = theirs.Lock(ctx, name)
			require.NoError(t, err)
			require.NoError(t, theirHold.Unlock())
		})
	}
}
