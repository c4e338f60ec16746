package client

import (
	"context"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// tenancy is the part of a Lock that held.mu guards.
type tenancy struct {
	cancel   func(cause error) // ends the Lock's context
	released bool
}

// ending is the end of a tenure: what is left to do without the mutex.
type ending struct {
	cause error
	holds []*tenancy // whose contexts are to be cancelled
	first bool       // the tenure had not ended before
	ours  bool       // the lock still is
	tells *Tenure    // what the Observer is to be told; nil: nothing
}

// endings are the actions that end the work, and why.
var endings = map[lease.Action]error{
	lease.Expire:          ErrExpired,
	lease.StopMaxHold:     ErrMaxHold,
	lease.StopMaxRenewals: ErrMaxRenewals,
}

// over reports whether a context has ended. It does not ask a lock's context to look at the clock,
// which takes mutexes.
func over(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}
