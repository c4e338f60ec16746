// SPDX-License-Identifier: Apache-2.0

package functions

import _ "embed"

// FencedSource is the second library, for writes in Redis that are refused if their fencing token is
// older than one that was seen. Locks do not need it. FENCED.md in this folder is its contract.
//
//go:embed fenced.lua
var FencedSource string

// FencedLibrary is the name that FencedSource registers itself under.
const FencedLibrary = "holdfast_fenced"

// FencedVersion is the version of FencedSource, as the function [ReadFencedVersion] replies it.
const FencedVersion = "1.0.0"

// The functions of the second library. What each takes and replies stands in FENCED.md.
const (
	Claim             = "holdfast_claim"
	SetIf             = "holdfast_set_if"
	IncrByIf          = "holdfast_incrby_if"
	AppendIf          = "holdfast_append_if"
	HSetIf            = "holdfast_hset_if"
	DelIf             = "holdfast_del_if"
	ReadFencedVersion = "holdfast_fenced_version"
)

// FencedNames returns every function that FencedSource registers.
func FencedNames() []string {
	return []string{Claim, SetIf, IncrByIf, AppendIf, HSetIf, DelIf, ReadFencedVersion}
}
