// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// What the client does upon locks, with limited and shared ones.

// Watch tells of each that comes and leaves.
func TestWatchACrowd(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, watcher := s.Client(client.Config{}), s.Client(client.Config{})
		over, cancel := context.WithCancel(ctx)
		var seen []int
		done := make(chan struct{})
		go func() {
			defer close(done)
			for info, err := range watcher.Watch(over, "x") {
				require.NoError(t, err)
				seen = append(seen, info.Holds)
			}
		}()
		var locks []*client.Lock
		for range 3 {
			time.Sleep(time.Minute)
			locks = append(locks, holding(t, c, "x", client.WithShared()))
		}
		for _, l := range locks {
			time.Sleep(time.Minute)
			require.NoError(t, l.Release(ctx))
		}
		time.Sleep(time.Minute)
		cancel()
		<-done
		require.Equal(t, []int{0, 1, 2, 3, 2, 1, 0}, seen)
	})
}
