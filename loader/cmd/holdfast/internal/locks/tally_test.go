// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A lock whose holder is another one than at the last look was handed over; one that is new was not. The
// rate is over a second at least, however soon one look follows another.
func TestHandOversAreCounted(t *testing.T) {
	ctx, view, call := loaded(t)
	series := Series{View: view, Within: time.Minute}
	look := func(held, waiting, handOvers int) Look {
		t.Helper()
		l := series.Look(ctx, Filter{})
		require.Empty(t, l.Errors)
		require.Equal(t, []int{held, waiting, handOvers}, []int{l.Held, l.Waiting, l.HandOvers})
		require.LessOrEqual(t, l.PerSecond, 1.0, "there is one")
		return l
	}
	call("acquire", "lock:a", "first", "600000")
	call("acquire", "lock:b", "other", "600000")
	call("wait", "lock:a", "second", "600000")
	look(2, 1, 0)
	look(2, 1, 0)
	call("release", "lock:a", "first")
	call("renew", "lock:a", "second", "600000")
	call("acquire", "lock:c", "new", "600000")
	soon := look(3, 0, 1).PerSecond // 0, if the look before was within a second
	series.counted = series.counted.Add(-2 * time.Second)
	require.Positive(t, soon+look(3, 0, 0).PerSecond)
	call("release", "lock:a", "second")
	call("renew", "lock:b", "other", "600000")
	look(2, 0, 0)
}
