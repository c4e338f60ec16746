// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"syscall"
)

// errPortTaken is why a server did not start: try another port.
var errPortTaken = errors.New("port is taken")

// process is a server that runs somewhere: as a local process or in a container.
type process interface {
	Dir() string                 // its directory as it sees it
	Preload(name string)         // start with this shared library, which is put before
	Put(name, text string) error // writes a file into its directory
	Start() error                // with the files as they are, also after an end
	Signal(syscall.Signal) error // sends; does not wait for the effect
	Ended() bool                 // it is not running
	Wait(context.Context) error  // blocks until it is not running
	Log() string                 // what it printed so far
	Remove() error               // kills it, deletes its files; safe to repeat
}
