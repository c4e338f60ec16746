package server

import "github.com/holdfast-go/holdfast/integration/server/internal/machine"

// Flavour is one server that this machine can start.
type Flavour = machine.Flavour

// Runtime is how a server runs.
type Runtime = machine.Runtime

// The runtimes.
const (
	Local     = machine.Local
	Container = machine.Container
	External  = machine.External
)
