// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

func TestMain(m *testing.M) { testbed.Main(m) }

// each runs a test on a server of every flavour. With options the server is the test's own,
// otherwise it is shared with other tests, one after the other.
func each(t *testing.T, test func(t *testing.T, b *bed), opts ...server.Option) {
	t.Helper()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		if len(opts) > 0 {
			test(t, lay(t, server.Single(t, append(opts, server.WithFlavour(f))...)))
			return
		}
		test(t, lay(t, testbed.Share(t, server.Spec{Flavour: f})))
	})
}
