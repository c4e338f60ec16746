// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind is the shape of a deployment.
type Kind int

// The kinds of deployment that this package starts.
const (
	KindSingle     Kind = iota // one server
	KindReplicated             // one primary and its replicas
	KindSentinel               // one primary, two replicas, three sentinels
	KindCluster                // three primaries with one replica each
	KindSeveral                // servers that know nothing of each other
)

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	return [...]string{"single", "replicated", "sentinel", "cluster", "several"}[k]
}

// Spec says what to start. The zero value is a single server of the default
// flavour.
type Spec struct {
	Kind     Kind
	Replicas int         // replicas of KindReplicated; the other kinds have fixed numbers
	Servers  int         // of KindSeveral
	Flavour  Flavour     // which server; zero means Default
	Config   [][2]string // directives for every data node, in order, after the package's own
	ACL      []string    // lines as in an ACL file: "user alice on >secret ~lock:* +@all"
	Preload  string      // a shared library that every server runs with, as LD_PRELOAD does
	Own      bool        // the caller kills, pauses or configures it: HOLDFAST_REDIS will not do

	// Before is called when all servers have their addresses and directories, and
	// none of them runs: to Put files. It is called again, for a new Deployment, if
	// other processes took the ports.
	Before func(*Deployment) error
}

// Option changes the Spec of a deployment started for a test.
type Option func(*Spec)

// WithConfig adds a directive to the configuration file of every data node,
// for example WithConfig("maxmemory", "10mb"). The last one of a name counts.
func WithConfig(name, value string) Option {
	return func(s *Spec) { s.Config = append(s.Config, [2]string{name, value}) }
}

// WithACL adds users to every data node, one line as in an ACL file each.
func WithACL(lines ...string) Option {
	return func(s *Spec) { s.ACL = append(s.ACL, lines...) }
}

// WithFlavour chooses the server; without it the Default is used.
func WithFlavour(f Flavour) Option {
	return func(s *Spec) { s.Flavour = f }
}

// Owned says that the test kills, pauses, restarts or reconfigures its nodes,
// so that it must not get the server at HOLDFAST_REDIS.
func Owned() Option {
	return func(s *Spec) { s.Own = true }
}

// owns tells why the server at HOLDFAST_REDIS cannot serve this Spec; it is
// empty if it can.
func (s *Spec) owns() string {
	switch {
	case s.Kind != KindSingle:
		return fmt.Sprintf("a %s deployment needs several servers", s.Kind)
	case len(s.Config)+len(s.ACL)+len(s.Preload) > 0 || s.Before != nil:
		return "it needs a configuration of its own"
	case s.Own:
		return "it kills or pauses its server"
	}
	return ""
}

// setting returns the last value given for a directive, or "".
func (s *Spec) setting(name string) string {
	for _, kv := range slices.Backward(s.Config) {
		if kv[0] == name {
			return kv[1]
		}
	}
	return ""
}

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
