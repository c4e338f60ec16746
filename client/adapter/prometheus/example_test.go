// SPDX-License-Identifier: Apache-2.0

package holdfastprom_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/holdfast-go/holdfast/client"
	holdfastprom "github.com/holdfast-go/holdfast/client/adapter/prometheus"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// Metrics by the kind of lock: "order" for "order:42".
func Example() {
	run(func(t *testing.T) {
		locks := holdfastprom.New(holdfastprom.Options{
			Group: func(name string) string { kind, _, _ := strings.Cut(name, ":"); return kind },
		})
		registry := prometheus.NewRegistry() // or prometheus.MustRegister(locks)
		registry.MustRegister(locks)

		c := locktest.New(t).Client(client.Config{Observer: locks.Observer()}) // or client.Open
		err := c.Do(t.Context(), "order:42", func(context.Context) error {
			return testutil.GatherAndCompare(registry, strings.NewReader(`
				# HELP holdfast_lock_held Locks that are held by this process.
				# TYPE holdfast_lock_held gauge
				holdfast_lock_held{lock="order"} 1
			`), "holdfast_lock_held")
		})
		if err != nil {
			t.Error(err)
		}
	})
	// Output: the test passes
}

// run runs the test of an Example, which go test gives no T. What the test says goes to standard
// error.
func run(test func(t *testing.T)) {
	out := os.Stdout
	os.Stdout = os.Stderr
	ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "example", F: test}})
	os.Stdout = out
	if ok {
		fmt.Println("the test passes")
	} else {
		fmt.Println("the test fails")
	}
}
