// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

const soon = 15 * time.Second

func TestMain(m *testing.M) {
	reexec.Main(map[string]reexec.Role{starter: start})
	goleak.VerifyTestMain(m, leaks.Late()...)
}
