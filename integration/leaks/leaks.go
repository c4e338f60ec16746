// SPDX-License-Identifier: Apache-2.0

// Package leaks finds goroutines that tests leave behind, and counts connections.
package leaks

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
)

// patience is how long goroutines may take to end.
const patience = 5 * time.Second

// others are what the stack of a goroutine shows that is no leak of ours.
var others = [][]byte{
	[]byte("\nos/signal.loop("),
	[]byte("/integration/server.(*room).read("), // as long as the process
	// Of rueidis, for a while after a client of a Cluster is closed: it closes a connection that its
	// refreshed view of the Cluster does not need any more five seconds later, or one whose node two
	// redirects led back to, and waits up to a second before it refreshes that view.
	[]byte("\ngithub.com/redis/rueidis.(*clusterClient)._refresh.func2("),
	[]byte("\ngithub.com/redis/rueidis.(*clusterClient).redirectOrNew.func1("),
	[]byte("\ngithub.com/redis/rueidis.(*call).DelayDo.func1("),
}

// Known are goroutines that there may be.
type Known map[string]bool

// Now are all that there are at the moment.
func Now() Known {
	known := Known{}
	for _, stack := range stacks() {
		known[id(stack)] = true
	}
	return known
}

// Find returns an error with the stacks of all goroutines but the caller's and those that are known, if they do
// not end within some seconds.
func Find(known Known) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		left := slices.DeleteFunc(stacks()[1:], func(stack []byte) bool {
			return known[id(stack)] || slices.ContainsFunc(others, func(part []byte) bool { return bytes.Contains(stack, part) })
		})
		if len(left) == 0 {
			return nil
		}
		if time.Since(began) > patience {
			return fmt.Errorf("%d goroutines are left:\n%s", len(left), bytes.Join(left, []byte("\n\n")))
		}
	}
}

// Check ends a TestMain: it returns the exit status of m.Run, or 1, with what it found on standard error, if
// goroutines are left.
func Check(code int) int {
	if err := Find(nil); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// stacks are those of all goroutines, the caller's first.
func stacks() [][]byte {
	for size := 1 << 16; ; size *= 2 {
		all := make([]byte, size)
		if n := runtime.Stack(all, true); n < size {
			return bytes.Split(bytes.TrimSpace(all[:n]), []byte("\n\n"))
		}
	}
}

// id is the number of a goroutine, as in "goroutine 7 [select]:".
func id(stack []byte) string { return string(bytes.Fields(stack)[1]) }
