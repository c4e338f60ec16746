// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/stretchr/testify/require"
)

// In Cluster each primary needs the library, and the commands of a pipeline go to several.
func TestCluster(t *testing.T) {
	s := server.Cluster(t)
	without := connect(t, s.Addrs()[0], nil)
	_, err := without.Do(t.Context(), about(t, Acquire))
	require.ErrorIs(t, err, ErrLibrary)
	require.ErrorContains(t, err, "run: holdfast load --addr 127.0.0.1:", "any node will do")

	c := connect(t, s.Addrs()[0], func(cfg *Config) { cfg.AutoLoad = true })
	var calls []Call
	for i := range 60 {
		calls = append(calls, about(t, Acquire, func(call *Call) {
			call.Key, call.Tracked = fmt.Sprintf("%s-%d", call.Key, i), i%2 == 0
		}))
	}
	for _, o := range c.Send(t.Context(), calls) {
		require.NoError(t, o.Err)
		require.True(t, o.Yes)
	}
	for i := range calls { // a repeat finds itself, at the node of the key
		r, err := c.Do(t.Context(), calls[i])
		require.NoError(t, err)
		require.True(t, r.Yes)
	}
}
