// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/holdfast-go/holdfast/functions"

// The libraries that --library names.
const (
	libraryLock   = "lock"
	libraryFenced = "fenced"
)

// libraryText is a library in this command: its name on the servers, its version and its source.
type libraryText struct{ name, version, source string }

// chosen is the library that the command is about.
func (c *config) chosen() libraryText {
	if c.library == libraryFenced {
		return libraryText{functions.FencedLibrary, functions.FencedVersion, functions.FencedSource}
	}
	return libraryText{functions.Library, functions.Version, functions.Source}
}
