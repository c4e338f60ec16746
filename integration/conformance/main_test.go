package conformance

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/server"
)

// shared are the deployments that the tests use one after the other: starting one takes longer than
// most tests.
var shared sync.Map // name -> func() (*server.Deployment, error)

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests here wait more than they compute: all deployments at once, whatever the number of
	// processors.
	_ = flag.Set("test.parallel", "16")
	code := m.Run()
	shared.Range(func(_, start any) bool {
		if d, err := start.(func() (*server.Deployment, error))(); err == nil {
			err = d.Close()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
		return true
	})
	os.Exit(leaks.Check(code))
}

// each runs a test on every deployment, all at once. A deployment serves one top-level test alone, but for
// the parallel ones: those wait long, and count no calls.
func each(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	eachFlavour(t, test)
	for _, kind := range []server.Kind{server.KindReplicated, server.KindSentinel, server.KindCluster} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			test(t, lay(t, share(t, kind.String(), server.Spec{Kind: kind, Replicas: 2})))
		})
	}
}

// eachFlavour runs a test on a single server of every flavour.
func eachFlavour(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		t.Parallel()
		test(t, lay(t, share(t, f.String(), server.Spec{Kind: server.KindSingle, Flavour: f})))
	})
}

func share(tb testing.TB, name string, spec server.Spec) *server.Deployment {
	tb.Helper()
	start, _ := shared.LoadOrStore(name, sync.OnceValues(func() (*server.Deployment, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		d, err := server.Start(ctx, spec)
		if err == nil {
			err = d.LoadFunctions(ctx)
		}
		return d, err
	}))
	d, err := start.(func() (*server.Deployment, error))()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}
