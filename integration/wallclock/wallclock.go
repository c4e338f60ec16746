// SPDX-License-Identifier: Apache-2.0

// Package wallclock builds a wall clock that can be wrong, for a server of integration/server that runs
// with it as its Preload. The node's file File says by how much; without it the clock is right.
package wallclock

import (
	_ "embed"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/integration/preload"
)

// File is in the server's working directory.
const File = "clock"

//go:embed preload/clock.c
var source string

// Build returns the library. The error says why it cannot be built on this machine: it needs a C
// compiler.
func Build() (library string, err error) { return preload.Build("a clock that can be wrong", source) }

// Ahead is the text of the file for a clock that is ahead by so much, or behind.
func Ahead(by time.Duration) string { return strconv.FormatInt(by.Milliseconds(), 10) }
