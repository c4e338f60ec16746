// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// What can be wrong, for errors.Is. Load, Verify and Unload return a *NodeError with one of them
// for each node concerned.
var (
	// ErrContract: the node runs a library of another contract, whose callers do not understand the
	// one offered. The error is a *VersionError.
	ErrContract = errors.New("the server runs a library of another contract, whose callers and locks do not go with this one")
	// ErrForeign: another library has our name, or registers a function of ours. The error is a
	// *ForeignError.
	ErrForeign = errors.New("the name belongs to another library")
	// ErrDiffers: the node does not run the library that it should.
	ErrDiffers = errors.New("not the library that it should be")
	// ErrDemoted: the node was a primary and takes no writes any more, and its successor could not
	// be loaded either.
	ErrDemoted = errors.New("the node is not a primary any more")
	// ErrDown: the cluster itself, or its sentinels, say that the node cannot be reached.
	ErrDown = errors.New("the cluster, or the sentinels, mark the node as failed")
	// ErrNoConnection: the client is not connected to that node, and Options.Dial was not given.
	ErrNoConnection = errors.New("the client has no connection to this node, and Options.Dial is not set")
	// ErrCredentials: the server refuses the user or the password, or wants one.
	ErrCredentials = errors.New("wrong user or password")
	// ErrPermission: the user may not do what the loader needs.
	ErrPermission = errors.New("the user lacks a permission")
	// ErrUnsupported: the server knows no functions.
	ErrUnsupported = errors.New("the server has no FUNCTION command: Redis 7.0 or later, or Valkey, is needed")
	// ErrSource: Options.Source is not a Holdfast library.
	ErrSource = errors.New("not a Holdfast library")
)

// NodeError is what went wrong at one node.
type NodeError struct {
	Addr string
	Op   string // "connect", "list", "load", "unload", "verify"
	Err  error
}

func (e *NodeError) Error() string { return e.Addr + ": " + e.Op + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *NodeError) Unwrap() error { return e.Err }

// VersionError says which versions are concerned. It is an ErrContract.
type VersionError struct{ Running, Offered string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: %s; refusing to load %s over it without force", ErrContract, e.Running, e.Offered)
}

// Unwrap returns ErrContract.
func (e *VersionError) Unwrap() error { return ErrContract }

// ForeignError says who has what is ours. It is an ErrForeign.
type ForeignError struct {
	Library string // the name of the other library, which may be our own
	// Functions of ours that it registers. None if it has our name and is not Holdfast.
	Functions []string
}

func (e *ForeignError) Error() string {
	if len(e.Functions) == 0 {
		return fmt.Sprintf("library '%s' on the server is not Holdfast; refusing to touch it without force", e.Library)
	}
	return fmt.Sprintf("library '%s' registers %s; refusing to delete it without force",
		e.Library, strings.Join(e.Functions, ", "))
}

// Is makes errors.Is(err, ErrForeign) true.
func (e *ForeignError) Is(target error) bool { return target == ErrForeign }

const permissions = "the loader needs +ping +role +function|list +function|load, " +
	"for guarded locks +multi +exec +fcall +time +info, in a cluster also +cluster|nodes +cluster|slots +cluster|shards, to unload also +function|delete"

// explain adds to a server's reply what it means here. Other errors, and nil, are returned as they
// are.
func explain(err error) error {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) {
		return err
	}
	text := strings.TrimPrefix(reply.Error(), "ERR ")
	switch {
	case strings.HasPrefix(text, "WRONGPASS"), strings.HasPrefix(text, "NOAUTH"):
		return fmt.Errorf("%w: %w", ErrCredentials, err)
	case strings.HasPrefix(text, "NOPERM"):
		return fmt.Errorf("%w (%s): %w", ErrPermission, permissions, err)
	case strings.HasPrefix(text, "READONLY"):
		return fmt.Errorf("%w: %w", ErrDemoted, err)
	case strings.HasPrefix(strings.ToLower(text), "unknown command") && strings.Contains(text, "FUNCTION"):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
