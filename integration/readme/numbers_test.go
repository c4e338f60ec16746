// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The numbers of the page that says how it works are those of the source.
func TestTheNumbersAreThoseOfTheSource(t *testing.T) {
	text := strings.Join(strings.Fields(page(t, "docs", "how-it-works.md")), " ")
	for _, c := range []struct{ says, file, source string }{
		{"writes the first waiter in as the owner, for 2 s at most", "functions/holdfast.lua", "local PROVISIONAL_MS = 2000 "},
		{"5,000 waiters", "functions/holdfast.lua", "local MAX_WAITERS = 5000\n"},
		{"at most 100 of them are passed over in one call", "functions/holdfast.lua", "local STEPS = 100 "},
		{"A hundredth of the lease and 2 ms more", "client/internal/lease/timing.go", "return length/100 + 2*time.Millisecond"},
		{"After 2 ms, or 1,000 passes, the lock goes back", "client/internal/queue/timing.go", "passRun   = 1000\n"},
		{"After 2 ms, or 1,000 passes, the lock goes back", "client/internal/queue/timing.go", "passSlice = 2 * time.Millisecond"},
		{"again for half a minute", "client/internal/keeper/timing.go", "{time.Second, 2 * time.Second, 7 * time.Second, 20 * time.Second}"},
		{"a third of the lease after the last renewal", "client/config.go", "Default a third of the lease"},
		{"no news is believed for longer than a second", "client/internal/tracking/tracking.go", "maxSilence = time.Second"},
		{"asks again after about a second", "client/internal/queue/timing.go", "lookPause = time.Second\n"},
		{"3 to 9 servers", "client/quorum/open.go", "servers < 3 || servers > 9 ||"},
	} {
		require.Contains(t, text, c.says)
		require.True(t, strings.Contains(page(t, c.file), c.source), "%s: %s", c.file, c.source)
	}
}
