// SPDX-License-Identifier: Apache-2.0

package client

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// What a client remembers is bounded in bytes of memory: short values take more for what is beside them.
func TestShortValuesTakeNoMoreMemoryThanLongOnes(t *testing.T) {
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := heap()
	s := values{known: map[string]*value{}, asked: map[string]*value{}}
	for i := range 2 * mostValues / 128 {
		key := "lock:" + Name("value", i)
		v, mine := s.join(key, false)
		require.True(t, mine)
		s.finish(key, v, &fcall.Done{Value: string([]byte{byte(i), 1}), Since: time.Now(), Keep: time.Hour}, time.Hour)
	}
	took := heap() - before
	require.Less(t, took, mostValues*5/4, "%d values", len(s.known))
	runtime.KeepAlive(&s)
}
