package machine

import (
	"context"
	"errors"
	"syscall"
)

// ErrPortTaken is why a server did not start: try another port.
var ErrPortTaken = errors.New("port is taken")

// Process is a server that runs somewhere: as a local process or in a
// container.
type Process interface {
	Place() (bind, dir string)   // where it listens, and its directory as it sees it
	Preload(name string)         // start with this shared library, which is put before
	Put(name, text string) error // writes a file into its directory
	Start(conf string) error     // first start, with this configuration
	Restart() error              // start after an end, with the files as they are
	Signal(syscall.Signal) error // sends; does not wait for the effect
	Ended() bool                 // it is not running
	Wait(context.Context) error  // blocks until it is not running
	Log() string                 // what it printed so far
	Remove() error               // kills it, deletes its files; safe to repeat
}

// Engine is a container engine, as package container has it.
type Engine struct {
	// Flavours are the images that this machine has or can pull, or if it may can build.
	Flavours func(ctx context.Context, mayBuild bool) ([]Flavour, error)
	// Shared returns why servers in containers cannot talk to each other at one address; "": they can.
	Shared func() (not string, err error)
	// New makes a container for a server that listens at port; it is not started.
	New func(f Flavour, port int, sentinel bool) (Process, error)
}

// Containers is the engine of a program that imports package container; nil: it does not.
var Containers *Engine
