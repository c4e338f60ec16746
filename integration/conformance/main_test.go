// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"flag"
	"testing"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

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
