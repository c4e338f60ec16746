// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/reexec"
)

func TestMain(m *testing.M) {
	reexec.Main(roles)
	os.Exit(leaks.Check(m.Run()))
}
