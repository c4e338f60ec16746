package functions

import _ "embed"

// GuardSource is the second library, for writes in Redis that are refused if their fencing token is
// older than one that was seen. Locks do not need it. GUARD.md in this folder is its contract.
//
//go:embed guard.lua
var GuardSource string

// GuardLibrary is the name that GuardSource registers itself under.
const GuardLibrary = "holdfast_guard"

// GuardVersion is the version of GuardSource, as the function [ReadGuardVersion] replies it.
const GuardVersion = "1.0.0"

// The functions of the second library. What each takes and replies stands in GUARD.md.
const (
	Claim            = "holdfast_claim"
	SetIf            = "holdfast_set_if"
	IncrByIf         = "holdfast_incrby_if"
	AppendIf         = "holdfast_append_if"
	HSetIf           = "holdfast_hset_if"
	DelIf            = "holdfast_del_if"
	ReadGuardVersion = "holdfast_guard_version"
)

// GuardNames returns every function that GuardSource registers.
func GuardNames() []string {
	return []string{Claim, SetIf, IncrByIf, AppendIf, HSetIf, DelIf, ReadGuardVersion}
}
