// SPDX-License-Identifier: Apache-2.0

// Package risk knows by which of its settings a server can lose locks, or grant one twice. The table
// "What to set on the servers" of docs/guarantees.md says why.
package risk

import "fmt"

// Code names a risk.
type Code string

// The risks.
const (
	NoPersistence       Code = "no-persistence"
	RDBOnly             Code = "rdb-only"
	AppendFsyncNo       Code = "appendfsync-no"
	AppendFsyncEverysec Code = "appendfsync-everysec"
	MinReplicas         Code = "min-replicas"
	Eviction            Code = "eviction"
	Unknown             Code = "not-checked"
)

// Risk is one that a server runs.
type Risk struct {
	Code Code
	Text string // the setting, and what it does, for people
}

// Settings are those that Of reads.
var Settings = []string{"appendonly", "appendfsync", "save", "min-replicas-to-write", "maxmemory", "maxmemory-policy"}

// Of returns the risks of a server with these settings: some services answer with none. Replicas are those that are connected to it;
// a replica itself has none.
func Of(set map[string]string, replicas int) (found []Risk) {
	risk := func(code Code, format string, args ...any) {
		found = append(found, Risk{code, fmt.Sprintf(format, args...)})
	}
	switch sync := set["appendfsync"]; {
	case len(set) == 0:
		risk(Unknown, "its settings are unknown: CONFIG GET names none")
		return found
	case set["appendonly"] == "yes" && sync != "always":
		code := AppendFsyncNo
		if sync == "everysec" {
			code = AppendFsyncEverysec
		}
		risk(code, "appendfsync %s: after a crash of its machine it forgets the locks of the last moments", sync)
	case set["appendonly"] == "yes":
	case set["save"] == "":
		risk(NoPersistence, "no persistence: after a restart it knows no lock, and no functions")
	default:
		risk(RDBOnly, "appendonly no: after a restart it knows the locks of its last RDB file")
	}
	if set["min-replicas-to-write"] == "0" && replicas > 0 {
		risk(MinReplicas, "min-replicas-to-write 0: cut off from its %d replicas it goes on granting locks", replicas)
	}
	if policy := set["maxmemory-policy"]; policy != "noeviction" && set["maxmemory"] != "0" {
		risk(Eviction, "maxmemory-policy %s: it evicts locks when its memory is full", policy)
	}
	return found
}
