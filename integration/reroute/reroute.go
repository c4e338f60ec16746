// SPDX-License-Identifier: Apache-2.0

// Package reroute builds a connect() that goes elsewhere, for a server of integration/server that runs
// with it as its Preload. The node's file File says where to; without it each connection goes where it
// was meant to. So servers talk to each other through proxies, and tell everybody their real addresses.
package reroute

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/integration/preload"
)

// File is in the server's working directory.
const File = "routes"

//go:embed preload/connect.c
var source string

// Build returns the library. The error says why it cannot be built on this machine: it needs a C
// compiler, and Linux on a processor that has a system call connect().
func Build() (library string, err error) {
	return preload.Build("a connect() that goes elsewhere", source)
}

// Routes is the text of the file for connections to ports of 127.0.0.1 that go to other ports there.
// The library reads 4 KiB of it, some 300 ports.
func Routes(to map[int]int) string {
	var b strings.Builder
	for _, port := range slices.Sorted(maps.Keys(to)) {
		fmt.Fprintf(&b, "%d %d\n", port, to[port])
	}
	return b.String()
}
