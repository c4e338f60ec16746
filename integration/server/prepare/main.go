// SPDX-License-Identifier: Apache-2.0

// Command prepare brings the servers that the tests use to this machine (it
// pulls, builds or installs them if it has to) and prints which they are. The
// tests do the same by themselves, but "go test" hides what they print, and a
// test's time limit is no place for a download.
package main

import (
	"fmt"
	"os"

	"github.com/holdfast-go/holdfast/integration/server"
)

func main() {
	flavours, err := server.Flavours()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, f := range flavours {
		fmt.Println("server:", f)
	}
}
