package testbed

import (
	"fmt"
	"os"

	"go.uber.org/goleak"
)

// Leaks ends a TestMain: it returns the exit status of m.Run, or 1, with what it
// found on standard error, if goroutines are left.
func Leaks(code int) int {
	// rueidis closes the connections of a changed Cluster five seconds later, and by itself.
	late := goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2")
	if err := goleak.Find(late); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
