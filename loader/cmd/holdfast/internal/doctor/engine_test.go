// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// No server of these tests lacks the engine, but each can be made to say so.
func TestAMissingEngineIsFound(t *testing.T) {
	d := server.Single(t, server.Owned())
	option := d.ClientOption()
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	for lua, codes := range map[string][]string{
		"return {map={engines={map={LUA={map={a=1}}}}}}": nil,
		"return {map={engines={map={JS={map={a=1}}}}}}":  {"engine-missing"},
	} {
		reply, err := redis.Do(t.Context(), redis.B().Eval().Script("redis.setresp(3) "+lua).Numkeys(0).Build()).AsMap()
		require.NoError(t, err)
		n := said(nil)
		n.engines(reply)
		require.Equal(t, codes, codesOf(n))
	}
}
