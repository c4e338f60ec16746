// SPDX-License-Identifier: Apache-2.0

package holding

import (
	"errors"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// The ends of a lock. Package client exports them.
var (
	// ErrLost is the kind of all that follow but ErrNotHeld.
	ErrLost = errors.New("lock lost")

	ErrExpired     = fcall.NewKind("the lease ended", ErrLost)
	ErrTaken       = fcall.NewKind("the server says not ours", ErrLost)
	ErrBroken      = fcall.NewKind("broken by an operator", ErrLost)
	ErrMaxHold     = fcall.NewKind("held for the maximum time", ErrLost)
	ErrMaxRenewals = fcall.NewKind("renewed the maximum number", ErrLost)
	ErrAbandoned   = fcall.NewKind("its context ended, and nobody released it", ErrLost)

	ErrNotHeld = fcall.NewKind("not held", fcall.ErrInvalid)
)
