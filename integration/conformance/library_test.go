package conformance

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func defaultSpec(tb testing.TB) server.Spec {
	tb.Helper()
	return server.Spec{Kind: server.KindSingle, Flavour: server.Matrix(tb)[0]}
}

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

func TestAMissingLibraryNamesTheCommand(t *testing.T) {
	bare(t, func(t *testing.T, e *env) {
		c := e.open(client.Config{})
		_, err := c.TryAcquire(e.Ctx, "a")
		require.ErrorIs(t, err, client.ErrLibrary)
		only(t, client.ErrInvalid, err)
		require.Contains(t, err.Error(), "holdfast load")
		_, err = c.Acquire(e.Ctx, "a")
		require.ErrorIs(t, err, client.ErrLibrary)
		_, err = c.Inspect(e.Ctx, "a")
		require.ErrorIs(t, err, client.ErrLibrary)
		_, err = c.Break(e.Ctx, "a", "")
		require.ErrorIs(t, err, client.ErrLibrary)
		_, err = c.Version(e.Ctx)
		require.ErrorIs(t, err, client.ErrLibrary)
		e.D.Load(t)
		e.Release(e.Take(c, "a"))
	})
}

func TestAutoLoad(t *testing.T) {
	bare(t, func(t *testing.T, e *env) {
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

// A library under our function names that answers otherwise must not be taken for a lock.
func TestALibraryOfAnotherContract(t *testing.T) {
	e := lay(t, server.Single(t, server.Owned()))
	code := "#!lua name=other\nredis.register_function('holdfast_acquire', function() return {2, 'surprise'} end)"
	require.NoError(t, e.Redis.Do(e.Ctx, e.Redis.B().FunctionLoad().FunctionCode(code).Build()).Error())
	_, err := e.open(client.Config{}).TryAcquire(e.Ctx, "a")
	require.ErrorIs(t, err, client.ErrLibrary)
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

// A library that knows fewer arguments than this client sends is an older one; nobody's argument is
// wrong.
func TestATooOldLibraryNamesTheCommand(t *testing.T) {
	bare(t, func(t *testing.T, e *env) {
		const check = "  arity(args, 2, 4, 'owner, ttl_ms [, fence_block [, guard_ms]]')"
		old := strings.Replace(functions.Source, check, "  arity(args, 1, 1, 'owner')", 1)
		require.NotEqual(t, functions.Source, old)
		primaries, err := e.D.Primaries(e.Ctx)
		require.NoError(t, err)
		for _, n := range primaries {
			_, err := n.Do(e.Ctx, "FUNCTION", "LOAD", old)
			require.NoError(t, err)
		}
		_, err = e.open(client.Config{}).TryAcquire(e.Ctx, "a")
		require.ErrorIs(t, err, client.ErrLibrary)
		require.NotErrorIs(t, err, client.ErrArgument)
		require.Contains(t, err.Error(), "holdfast load")
	})
}
