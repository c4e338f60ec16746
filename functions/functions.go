// Package functions holds the Holdfast library itself: the Lua source that FUNCTION LOAD takes, and the names, version
// and error codes that its callers share. README.md in this folder is the contract for callers in every language.
package functions

import _ "embed"

// Source is the library as FUNCTION LOAD takes it.
//
//go:embed holdfast.lua
var Source string

// Library is the name that the source registers itself under; it changes with the contract's major version.
const Library = "holdfast"

// Version is the version of Source, as the function [ReadVersion] replies it.
const Version = "1.0.0"

// The functions of the library. What each takes and replies stands in README.md.
const (
	Acquire          = "holdfast_acquire"
	AcquireReentrant = "holdfast_acquire_reentrant"
	Renew            = "holdfast_renew"
	Release          = "holdfast_release"
	Wait             = "holdfast_wait"
	Leave            = "holdfast_leave"
	Break            = "holdfast_break"
	Inspect          = "holdfast_inspect"
	ReadVersion      = "holdfast_version"
)

// Names returns every function that Source registers.
func Names() []string {
	return []string{Acquire, AcquireReentrant, Renew, Release, Wait, Leave, Break, Inspect, ReadVersion}
}

// The first words of the library's error replies. All of them mean that nothing was changed, CodeServer excepted.
const (
	CodeArg    = "HFARG"    // an argument or the number of keys is wrong; the text names it
	CodeFull   = "HFFULL"   // the line or the set of holds is at its bound
	CodeType   = "HFTYPE"   // the key holds something that is not a lock
	CodeServer = "HFSERVER" // the server refused a command inside the function; its own words follow
)

// Bounds that the library enforces.
const (
	MaxBytes     = 512            // of an owner, a channel or a reason
	MaxHoldBytes = 64             // of a hold's id
	MaxHolds     = 1024           // of one lock
	MaxWaiters   = 10_000         // in one line
	MaxTTL       = 31_536_000_000 // milliseconds: a year
	MaxBlock     = 1_000_000      // fencing tokens reserved at once, and at most 1000 for each millisecond of the lease
)

// ProvisionalTTL is the longest lease, in milliseconds, of a lock that was handed over to a waiter until it confirms.
const ProvisionalTTL = 2000
