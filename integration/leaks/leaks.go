// SPDX-License-Identifier: Apache-2.0

// Package leaks finds goroutines that the tests of a package leave behind.
package leaks

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// Late are the goroutines of rueidis that outlive a closed client of a Cluster,
// and then end by themselves: it closes a connection that its refreshed view of
// the Cluster does not need any more five seconds later, or one whose node two
// redirects led back to, and waits up to a second before it refreshes that view.
func Late() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient).redirectOrNew.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	}
}

// Check ends a TestMain: it returns the exit status of m.Run, or 1, with what it
// found on standard error, if goroutines are left.
func Check(code int) int {
	if err := goleak.Find(Late()...); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
