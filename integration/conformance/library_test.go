// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// bare runs a test on deployments of its own, without the library.
func bare(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB, ...server.Option) *server.Deployment{
		"single": server.Single, "cluster": server.Cluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, lay(t, start(t, server.Owned())))
		})
	}
}

func TestAutoLoad(t *testing.T) {
	bare(t, func(t *testing.T, e *env) {
		_, err := e.open(client.Config{}).Acquire(e.Ctx, "a")
		require.ErrorIs(t, err, client.ErrLibrary)
		require.ErrorContains(t, err, "holdfast load")
		c := e.open(client.Config{AutoLoad: true})
		e.Release(e.Take(c, "a"))
		primaries, err := e.D.Primaries(e.Ctx)
		require.NoError(t, err)
		for _, n := range primaries {
			m, err := n.Do(e.Ctx, "FCALL_RO", functions.ReadVersion, "0")
			require.NoError(t, err, "it is on every primary")
			version, err := m.ToString()
			require.NoError(t, err)
			require.Equal(t, functions.Version, version)
		}
	})
}

func TestPermissions(t *testing.T) {
	const acl = "user app on >secret ~conf:* &conf:* +@connection +@read +@write +@hash +@keyspace +fcall +time +spublish +client|tracking -ssubscribe"
	e := lay(t, server.Single(t, server.WithACL(acl)))
	e.D.Load(t)
	option := e.D.ClientOption()
	option.Username, option.Password = "app", "secret"
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	defer redis.Close()
	c, err := client.New(redis, client.Config{Prefix: e.Prefix, Lease: testbed.Long})
	require.NoError(t, err)
	defer c.Close()
	other := e.open(client.Config{Lease: testbed.Long})
	l := e.Take(other, "a")
	waiting := e.Acquire(e.Ctx, c, "a") // no subscription is permitted: it polls
	e.Line(other, "a", 1)
	e.Release(l)
	e.Release(e.Locked(waiting).Lock)

	denied, err := client.New(redis, client.Config{Prefix: "elsewhere:"})
	require.NoError(t, err)
	defer denied.Close()
	_, err = denied.TryAcquire(e.Ctx, "a")
	require.ErrorIs(t, err, client.ErrDenied)
	only(t, client.ErrInvalid, err)
}

// A library of another contract answers in another way, or does not know a word. The error says which of
// the two is too old, and what to do; nobody's argument is wrong.
func TestALibraryOfAnotherVersion(t *testing.T) {
	e := own(t)
	for version, c := range map[string]struct{ answer, advice string }{
		"1.0.0": {"{1, 77, 3000, 1, 1}", "the library is too old; run: holdfast load --force --addr "},
		"2.0.9": {"redis.error_reply('HFOPTION GUARD is not known, expected: owner ttl_ms')", "; run: holdfast load --addr "},
		"3.1.0": {"{'yes', 77}", "the client is too old; run: go get "},
	} {
		e.admin("FUNCTION", "LOAD", "REPLACE", "#!lua name=holdfast\n"+
			"redis.register_function('"+functions.Acquire+"', function() return "+c.answer+" end)\n"+
			"redis.register_function{function_name='"+functions.ReadVersion+"', flags={'no-writes'}, callback=function() return '"+version+"' end}")
		_, err := e.open(client.Config{}).TryAcquire(e.Ctx, "a")
		require.ErrorIs(t, err, client.ErrLibrary, version)
		require.NotErrorIs(t, err, client.ErrArgument)
		require.ErrorContains(t, err, c.advice)
	}
}
