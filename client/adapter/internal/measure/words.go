// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/client"
)

// The words for a call, and for how it went if that was well. Kind has the others.
const (
	Try     = "try"
	Acquire = "acquire"

	Acquired  = "acquired"
	Passed    = "passed"    // by another goroutine of the process
	Reentered = "reentered" // in memory, a lock that the caller has
	Renewed   = "renewed"
	Released  = "released"
	Unknown   = "unknown"
)

// kinds are the kinds of errors, the more precise ones first.
var kinds = []struct {
	err  error
	word string
}{
	{client.ErrExpired, "expired"},
	{client.ErrTaken, "taken"},
	{client.ErrBroken, "broken"},
	{client.ErrMaxHold, "max_hold"},
	{client.ErrMaxRenewals, "max_renewals"},
	{client.ErrAbandoned, "abandoned"},
	{client.ErrBusy, "busy"},
	{client.ErrTimeout, "timeout"},
	{client.ErrUnreachable, "unreachable"},
	{client.ErrClosed, "closed"},
	{client.ErrInvalid, "invalid"},
	{context.Canceled, "canceled"},
}

// Causes are the words of the losses: those that Lost gets.
var Causes = []string{"expired", "taken", "broken", "max_hold", "max_renewals", "abandoned"}

// Words are all words that an adapter can get.
func Words() []string {
	words := []string{Try, Acquire, Acquired, Passed, Reentered, Renewed, Released, Unknown}
	for _, k := range kinds {
		words = append(words, k.word)
	}
	return words
}

// Kind is the word for an error of the client.
func Kind(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.word
		}
	}
	return Unknown
}

// Call is the word for TryAcquire or Acquire.
func Call(wait bool) string {
	if wait {
		return Acquire
	}
	return Try
}

// Granted is the word for how a lock was acquired.
func Granted(a client.Acquisition) string {
	switch {
	case a.Reentered:
		return Reentered
	case a.Passed:
		return Passed
	}
	return Acquired
}

// End is the word for how a tenure ended: released, passed, or the kind of its error. Of a release
// that is unreachable: the server may not know yet.
func End(t client.Tenure) string {
	switch {
	case t.Err != nil:
		return Kind(t.Err)
	case t.Passed:
		return Passed
	}
	return Released
}

// Bounds of histograms, in seconds. A wait is a round trip or the length of others' work; a hold is
// anything from microseconds to a leader's days; a renewal is a round trip.
var (
	WaitBounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	HoldBounds = []float64{.0001, .001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400}
	TripBounds = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
)

// What the metrics say, in all adapters.
const (
	WaitText     = "Time from the call of TryAcquire or Acquire to its return, by how it went."
	WaitingText  = "Calls of Acquire that have not returned yet."
	HoldText     = "Time that a lock was held, by how it ended."
	HeldText     = "Locks that are held by this process."
	RenewalText  = "Time until the server answered a renewal, or until none was waited for any more."
	LostText     = "Locks that ended before their release, by cause. The work may have run beside another holder."
	OutageText   = "Outages: renewals began to fail. Locks are lost if it lasts for a lease."
	RecoveryText = "Outages that ended: the server answers again."
)
