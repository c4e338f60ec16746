// SPDX-License-Identifier: Apache-2.0

package risk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that names no setting is not known to have no persistence.
func TestNoSettings(t *testing.T) {
	require.Equal(t, []Risk{{Unknown, "its settings are unknown: CONFIG GET names none"}}, Of(nil, 1))
}

// A setting that the server does not name is not known to be a bad one.
func TestSomeSettings(t *testing.T) {
	require.Equal(t, []Risk{{Unknown, "some of its settings are unknown: CONFIG GET does not name appendonly, " +
		"min-replicas-to-write, maxmemory-policy"}}, Of(map[string]string{"maxmemory": "100"}, 1))
	require.Equal(t, []Risk{{Unknown, "some of its settings are unknown: CONFIG GET does not name appendfsync"}},
		Of(map[string]string{"appendonly": "yes", "maxmemory": "0"}, 0))
	require.Equal(t, []Risk{{Unknown, "some of its settings are unknown: CONFIG GET does not name save"}},
		Of(map[string]string{"appendonly": "no", "maxmemory-policy": "noeviction"}, 0))
	require.Empty(t, Of(map[string]string{"appendonly": "yes", "appendfsync": "always", "maxmemory": "0"}, 0), "what is not needed may be missing")
}

// Every policy but noeviction evicts locks, those that later servers have too.
func TestEviction(t *testing.T) {
	sound := map[string]string{"appendonly": "yes", "appendfsync": "always", "min-replicas-to-write": "1", "maxmemory": "100"}
	for policy, evicts := range map[string]bool{"noeviction": false, "allkeys-lru": true, "volatile-ttl": true,
		"allkeys-lrm": true, "volatile-lrm": true} {
		sound["maxmemory-policy"] = policy
		found := Of(sound, 1)
		if !evicts {
			require.Empty(t, found)
			continue
		}
		require.Len(t, found, 1)
		require.Equal(t, Eviction, found[0].Code)
		require.Contains(t, found[0].Text, policy)
	}
}
