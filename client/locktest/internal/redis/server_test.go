// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

func itoa(n int) string { return strconv.Itoa(n) }

// whenExpired notes when a key was deleted because its time was over.
func whenExpired(at *time.Time) redis.Hooks {
	return redis.Hooks{Write: func(w redis.Write) {
		if w.Expired {
			*at = time.Now()
		}
	}}
}

// A message reaches subscribers at replicas, and counts only those here.
func TestMessagesReachReplicas(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		nodes := w.Cluster(1, 1)
		p, r := nodes[0], nodes[1]
		c := dial(t, w, "h", r.Addr())
		c.send("SSUBSCRIBE", "ch")
		time.Sleep(time.Second)
		require.Equal(t, []any{"ch", int64(1)}, r.Do("PUBSUB", "SHARDNUMSUB", "ch"))
		require.Equal(t, int64(0), p.Do("SPUBLISH", "ch", "hello"))
		for _, want := range [][]any{{"ssubscribe", "ch", int64(1)}, {"smessage", "ch", "hello"}} {
			require.Equal(t, want, bed.Must(c.Receive(time.Second)))
		}
	})
}
