// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/server"
)

// shared are the deployments that the tests of a package share: starting one takes longer than most
// tests.
var shared sync.Map // name -> func() (*server.Deployment, error)

// Share returns a deployment, with the library on it, that is the same for all
// tests of the package that want one like it. Main closes it.
func Share(tb testing.TB, spec server.Spec) *server.Deployment {
	tb.Helper()
	start, _ := shared.LoadOrStore(fmt.Sprint(spec), sync.OnceValues(func() (*server.Deployment, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		d, err := server.Start(ctx, spec)
		if err == nil {
			err = d.LoadFunctions(ctx)
		}
		return d, err
	}))
	d, err := start.(func() (*server.Deployment, error))()
	require.NoError(tb, err)
	return d
}

// Main is what a TestMain does that has nothing else to do: it runs the tests,
// closes what they shared, and looks for goroutines that are left.
func Main(m *testing.M) {
	code := m.Run()
	shared.Range(func(_, start any) bool {
		if d, err := start.(func() (*server.Deployment, error))(); err == nil {
			if err := d.Close(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
		return true
	})
	os.Exit(leaks.Check(code))
}
