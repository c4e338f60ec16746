// SPDX-License-Identifier: Apache-2.0

// Package images holds the scripts that bring a server to a machine that has
// none: images built from Debian packages, and an installation by the system's
// package manager. Each says at its top what it needs and does.
package images

import _ "embed"

// Build is build.sh, which builds the images named in Built.
//
//go:embed build.sh
var Build string

// InstallServer is install-server.sh.
//
//go:embed install-server.sh
var InstallServer string

// Built returns the names of the images that Build makes.
func Built() []string {
	return []string{"holdfast-test/redis:7.0", "holdfast-test/redis:8.0", "holdfast-test/valkey:8.1"}
}
