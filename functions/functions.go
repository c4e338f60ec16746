// Package functions holds the Holdfast library itself: the Lua source that FUNCTION LOAD takes, and
// the names, version and error codes that its callers share. README.md in this folder is the
// contract for callers in every language.
package functions

import _ "embed"

// Source is the library as FUNCTION LOAD takes it.
//
//go:embed holdfast.lua
var Source string

// Library is the name that the source registers itself under; it changes with the contract's major
// version.
const Library = "holdfast"

// Version is the version of Source, as the function [ReadVersion] replies it.
const Version = "1.0.0"

// The functions of the library. What each takes and replies stands in README.md.
const (
	Acquire          = "holdfast_acquire"
	AcquireReentrant = "holdfast_acquire_reentrant"
	Renew            = "holdfast_renew"
	Raise            = "holdfast_raise"
	Release          = "holdfast_release"
	Wait             = "holdfast_wait"
	Leave            = "holdfast_leave"
	Break            = "holdfast_break"
	Inspect          = "holdfast_inspect"
	AcquireAll       = "holdfast_acquire_all"
	Memory           = "holdfast_memory"
	ReadVersion      = "holdfast_version"
)

// Names returns every function that Source registers.
func Names() []string {
	return []string{Acquire, AcquireReentrant, Renew, Raise, Release, Wait, Leave, Break, Inspect, AcquireAll, Memory, ReadVersion}
}

// The first words of the library's error replies. All of them mean that nothing was changed,
// CodeServer excepted.
const (
	CodeArg  = "HFARG"  // an argument or the number of keys is wrong; the text names it
	CodeFull = "HFFULL" // the line or the set of holds is at its bound
	// the owner has or awaits the lock with a hold id and gave none, or the other way round
	CodeJoin = "HFJOIN"
	CodeType = "HFTYPE" // the key holds something that is not a lock
	// the server refused a command inside the function; its own words follow
	CodeServer = "HFSERVER"
)

// Bounds that the library enforces.
const (
	// of an owner, a channel or a reason; none may contain control characters
	MaxBytes     = 512
	MaxHoldBytes = 64             // of a hold's id
	MaxHolds     = 128            // of one lock
	MaxWaiters   = 5000           // in one line
	MaxLocks     = 100            // of one call of AcquireAll
	MaxTTL       = 31_536_000_000 // milliseconds: a year
	// fencing tokens reserved at once, and at most 1000 for each millisecond of the lease
	MaxBlock = 1_000_000
)

// Times of the library, in milliseconds.
const (
	// the longest lease of a lock that was handed over to a waiter, until it confirms
	ProvisionalTTL = 2000
	PollTTL        = 5000 // how long a waiter without a subscriber stays reachable after it asked
)
