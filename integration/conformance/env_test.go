// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// env is a deployment with the library on it, and a prefix of keys that no other test uses.
type env struct{ *testbed.Bed }

func lay(tb testing.TB, d *server.Deployment) *env {
	tb.Helper()
	return &env{testbed.Lay(tb, d, "conf:"+rand.Text()[:10]+":")}
}

// open returns a client of its own, closed at the end of the test.
func (e *env) open(cfg client.Config) *client.Client {
	e.TB.Helper()
	return e.Connect(e.D.ClientOption(), cfg)
}

func (e *env) inspect(c *client.Client, name string) client.Info {
	e.TB.Helper()
	info, err := c.Inspect(e.Ctx, name)
	require.NoError(e.TB, err)
	return info
}

var fcalls = regexp.MustCompile(`(?m)^cmdstat_fcall:calls=(\d+)`)

// calls counts the FCALLs that the deployment ever ran.
func (e *env) calls() (n int) {
	e.TB.Helper()
	for _, node := range e.D.Nodes() {
		m, err := node.Do(e.Ctx, "INFO", "commandstats")
		require.NoError(e.TB, err)
		text, err := m.ToString()
		require.NoError(e.TB, err)
		if found := fcalls.FindStringSubmatch(text); found != nil {
			calls, _ := strconv.Atoi(found[1])
			n += calls
		}
	}
	return n
}

// as returns the error of a type in err's tree.
func as[T error](e *env, err error) (target T) {
	e.TB.Helper()
	require.True(e.TB, errors.As(err, &target), "%T in %v", target, err)
	return target
}

// own is a single server that the test may stop and refuse things.
func own(t *testing.T, opts ...server.Option) *env {
	t.Helper()
	d := server.Single(t, append(opts, server.Owned())...)
	d.Load(t)
	return lay(t, d)
}

// admin sends a command to the only node.
func (e *env) admin(command ...string) string {
	e.TB.Helper()
	m, err := e.D.Nodes()[0].Do(e.Ctx, command...)
	require.NoError(e.TB, err)
	text, _ := m.ToString()
	return text
}

// kinds are what an error can be.
var kinds = []error{
	client.ErrBusy, client.ErrTimeout, client.ErrUnreachable, client.ErrClosed, client.ErrLost, client.ErrInvalid, context.Canceled,
}

// only requires that an error is of one kind, and of no other.
func only(tb testing.TB, kind, err error, what ...any) {
	tb.Helper()
	require.Contains(tb, kinds, kind, "not a kind")
	require.ErrorIs(tb, err, kind, what...)
	for _, other := range kinds {
		if other != kind {
			require.NotErrorIs(tb, err, other, what...)
		}
	}
	if kind != client.ErrTimeout {
		require.False(tb, errors.Is(err, context.DeadlineExceeded), "%v", err)
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests here wait more than they compute: all deployments at once, whatever the number of
	// processors.
	_ = flag.Set("test.parallel", "16")
	testbed.Main(m)
}

// each runs a test on every deployment, all at once. A deployment serves one top-level test alone, but for
// the parallel ones: those wait long, and count no calls.
func each(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Parallel()
		test(t, lay(t, testbed.Share(t, server.Spec{Flavour: f})))
	})
	for _, kind := range []server.Kind{server.KindReplicated, server.KindSentinel, server.KindCluster} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			test(t, lay(t, testbed.Share(t, server.Spec{Kind: kind, Replicas: 2})))
		})
	}
}
