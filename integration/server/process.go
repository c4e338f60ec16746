package server

import (
	"context"
	"syscall"
)

// process is a server that runs somewhere: as a local process or in a
// container.
type process interface {
	place() (bind, dir string)   // where it listens, and its directory as it sees it
	preload(name string)         // start with this shared library, which is put before
	put(name, text string) error // writes a file into its directory
	start(conf string) error     // first start, with this configuration
	restart() error              // start after an end, with the files as they are
	signal(syscall.Signal) error // sends; does not wait for the effect
	ended() bool                 // it is not running
	wait(context.Context) error  // blocks until it is not running
	log() string                 // what it printed so far
	remove() error               // kills it, deletes its files; safe to repeat
}
