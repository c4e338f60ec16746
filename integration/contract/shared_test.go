package contract

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/server"
)

// shared are the servers of the tests that only use keys of their own, one of each flavour:
// starting one takes longer than most tests.
var shared = map[string]*server.Deployment{}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, d := range shared {
		if err := d.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(leaks.Check(code))
}

// each runs a test on a server of every flavour. With options the server is the test's own,
// otherwise it is shared with other tests, one after the other.
func each(t *testing.T, test func(t *testing.T, b *bed), opts ...server.Option) {
	t.Helper()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		if len(opts) > 0 {
			test(t, lay(t, server.Single(t, append(opts, server.WithFlavour(f))...)))
			return
		}
		test(t, lay(t, share(t, f)))
	})
}

func share(tb testing.TB, f server.Flavour) *server.Deployment {
	tb.Helper()
	return start(tb, f.String(), server.Spec{Kind: server.KindSingle, Flavour: f})
}

// shareOwn shares a server that is nobody else's, whose users and statistics a test may change.
func shareOwn(tb testing.TB, f server.Flavour) *server.Deployment {
	tb.Helper()
	return start(tb, "own "+f.String(), server.Spec{Kind: server.KindSingle, Flavour: f, Own: true})
}

func start(tb testing.TB, name string, spec server.Spec) *server.Deployment {
	tb.Helper()
	if d := shared[name]; d != nil {
		return d
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	d, err := server.Start(ctx, spec)
	if err != nil {
		tb.Fatal(err)
	}
	shared[name] = d
	return d
}
