// SPDX-License-Identifier: Apache-2.0

// Package functions holds the Holdfast library itself: the Lua source that FUNCTION LOAD takes, and
// the names, words, version and error codes that its callers share. README.md in this folder is the
// contract for callers in every language.
package functions

import _ "embed"

// Source is the library as FUNCTION LOAD takes it.
//
//go:embed holdfast.lua
var Source string

// Library is the name that the source registers itself under.
const Library = "holdfast"

// Version is the version of Source, as the function [ReadVersion] replies it. Its major number is
// that of the contract.
const Version = "2.0.0"

// The functions of the library. What each takes and replies stands in README.md.
const (
	Acquire          = "holdfast_acquire"
	AcquireReentrant = "holdfast_acquire_reentrant"
	Renew            = "holdfast_renew"
	Release          = "holdfast_release"
	Wait             = "holdfast_wait"
	Finish           = "holdfast_finish"
	Leave            = "holdfast_leave"
	Break            = "holdfast_break"
	Inspect          = "holdfast_inspect"
	Holders          = "holdfast_holders"
	Memory           = "holdfast_memory"
	ReadVersion      = "holdfast_version"
)

// Names returns every function that Source registers.
func Names() []string {
	return []string{Acquire, AcquireReentrant, Renew, Release, Wait, Finish, Leave, Break, Inspect, Holders, Memory, ReadVersion}
}

// The words that stand behind a function's fixed arguments, in any order and any case. Each takes
// one value, but for the last four. README.md says which function knows which.
const (
	OptLimit   = "LIMIT"   // no more than so many limited holders beside one another
	OptTokens  = "TOKENS"  // a run of so many tokens
	OptGuard   = "GUARD"   // milliseconds that the server's memory must be unbroken for
	OptMinHold = "MINHOLD" // milliseconds from the grant in which nobody else gets the lock
	OptMaxWait = "MAXWAIT" // milliseconds: nobody joins whose turn is expected later
	OptChannel = "CHANNEL" // where the waiter hears of its grant
	OptHold    = "HOLD"    // the id of one hold of a joinable lock
	OptFence   = "FENCE"   // the token that the lock must have
	OptRaise   = "RAISE"   // the least token that the lock shall have
	OptLast    = "LAST"    // the last token of a run that was used
	OptOwner   = "OWNER"   // whose lock is to be broken
	OptReason  = "REASON"  // why it is broken
	OptShared  = "SHARED"  // beside others that share
	OptAll     = "ALL"     // every hold of a joinable lock
	OptForget  = "FORGET"  // no record of the break
	OptValue   = "VALUE"   // what the last holder finished with, if there is that, in place of the lock
)

// Why a call was refused: the fifth part of a refusal, and the last of what [Inspect] replies. A
// caller takes a word that it does not know as [WhyHeld].
const (
	WhyHeld     = "held"     // somebody has the lock
	WhyLimited  = "limited"  // limited holders have it
	WhyShared   = "shared"   // others share it
	WhyFree     = "free"     // nobody has it and nobody waits
	WhyKept     = "kept"     // nobody works under it, nobody gets it yet: a minimum
	WhyDone     = "done"     // the last holder finished with a value, which follows
	WhySettling = "settling" // the server's memory is too young for the lock's guard
	WhyServing  = "serving"  // the line is being served: ask again
	WhyForeign  = "foreign"  // a plain string of another service has the key
	WhyBroken   = "broken"   // the caller's lock was broken; a blank and the reason follow, if there is one
)

// The first words of the library's error replies. All of them mean that nothing was changed,
// CodeServer excepted.
const (
	CodeArg    = "HFARG"    // an argument or the number of keys is wrong; the text names it
	CodeOption = "HFOPTION" // the function does not know a word: the library may be too old
	CodeFull   = "HFFULL"   // the line or the set of holds is at its bound
	// the owner has or awaits the lock in another way: with a hold id, limited, shared
	CodeJoin = "HFJOIN"
	CodeType = "HFTYPE" // the key holds something that is not a lock
	// the server refused a command inside the function; its own words follow
	CodeServer = "HFSERVER"
)

// Bounds that the library enforces.
const (
	// of an owner, a channel or a reason; none may contain control characters. A key that is longer
	// is left out of grants
	MaxBytes     = 512
	MaxHoldBytes = 64             // of a hold's id
	MaxHolds     = 128            // of one lock
	MaxWaiters   = 5000           // in one line
	MaxHolders   = 1000           // of a limited or a shared lock
	MaxValue     = 65536          // bytes that a lock is finished with
	MaxTTL       = 31_536_000_000 // milliseconds: a year
	// fencing tokens of one run, and at most 1000 for each millisecond of the lease
	MaxTokens = 1_000_000
)

// Times of the library, in milliseconds.
const (
	// the longest lease of a lock that was handed over to a waiter, until it confirms
	ProvisionalTTL = 2000
	PollTTL        = 5000 // how long a waiter without a subscriber stays reachable after it asked
	// the record of a break stays until the end of the broken lease, within these
	MinRecord = 10_000
	MaxRecord = 600_000
)
