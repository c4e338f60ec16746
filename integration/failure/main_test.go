// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"flag"
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

func TestMain(m *testing.M) {
	reexec.Main(map[string]reexec.Role{holder: hold})
	flag.Parse()
	_ = flag.Set("test.parallel", "3") // tests here wait more than they compute
	code := m.Run()
	os.Exit(leaks.Check(code))
}
