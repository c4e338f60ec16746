package polyglot

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A command can end before the process that renews its lock has begun to hear signals. It is not waited
// for, and renews nothing.
func TestACommandOfTheShellEndsAtOnce(t *testing.T) {
	if !slices.ContainsFunc(workers(t), func(w worker) bool { return w.name == "sh" }) {
		t.Skip("no shell with redis-cli here")
	}
	b := newBed(t)
	host, port := place(t, b.node.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 60 {
				cmd := exec.CommandContext(ctx, "sh", "shell/holdfast.sh", "-l", "600000", fmt.Sprint("at once ", i), "true")
				cmd.Env = append(os.Environ(), "REDIS_CLI=redis-cli -h "+host+" -p "+port)
				cmd.WaitDelay = time.Second
				if said, err := cmd.CombinedOutput(); !assert.NoError(t, err, "%s", said) {
					return
				}
			}
		})
	}
	all.Wait()
}
