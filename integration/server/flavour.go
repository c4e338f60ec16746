// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"strings"
)

// Runtime is how a server runs.
type Runtime string

// The runtimes.
const (
	Local     Runtime = "local"     // a process of this machine
	Container Runtime = "container" // a container of the engine of this machine
	External  Runtime = "external"  // the server at HOLDFAST_REDIS
)

// Flavour is one server that this machine can start.
type Flavour struct {
	Runtime Runtime
	Image   string // of Container
	Binary  string // path, of Local
	Version string // of Local, for example "redis-server 7.0.15"
}

// String says which server this is, for people.
func (f Flavour) String() string {
	switch f.Runtime {
	case Local:
		return "local " + f.Version + " at " + f.Binary
	case Container:
		return "container " + f.Image
	case External:
		return "HOLDFAST_REDIS"
	}
	return "default"
}

// Name is String for the name of a subtest: one word without slashes.
func (f Flavour) Name() string {
	text := cmp.Or(f.Image, f.Version, f.String())
	return strings.NewReplacer("/", "-", " ", "-").Replace(text)
}
