package failure

import (
	"flag"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/integration/leaks"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "4") // tests here wait more than they compute
	code := m.Run()
	os.Exit(leaks.Check(code))
}
