package writeups

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
)

// The server of the tests that only use keys of their own.
var shared = sync.OnceValues(func() (*server.Deployment, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var err error
	if started, err = server.Start(ctx, server.Spec{}); err == nil {
		err = started.LoadFunctions(ctx)
	}
	return started, err
})

// started is that server once a test has asked for it.
var started *server.Deployment

func TestMain(m *testing.M) {
	reexec.Main(roles)
	code := m.Run()
	if started != nil {
		if err := started.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(leaks.Check(code))
}
