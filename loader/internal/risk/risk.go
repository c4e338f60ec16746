// SPDX-License-Identifier: Apache-2.0

// Package risk knows by which of its settings a server can lose locks, or grant one twice. The table
// "What to set on the servers" of docs/guarantees.md says why.
package risk

import (
	"fmt"
	"strings"
)

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

// Of returns the risks of a server with these settings: some services answer with none, or with some of them.
// Replicas are those that are connected to it; a replica itself has none.
func Of(set map[string]string, replicas int) (found []Risk) {
	risk := func(code Code, format string, args ...any) {
		found = append(found, Risk{code, fmt.Sprintf(format, args...)})
	}
	if len(set) == 0 {
		risk(Unknown, "its settings are unknown: CONFIG GET names none")
		return found
	}
	var unknown []string
	known := func(name string) bool {
		_, named := set[name]
		if !named {
			unknown = append(unknown, name)
		}
		return named
	}
	switch sync := set["appendfsync"]; {
	case !known("appendonly"):
	case set["appendonly"] == "yes" && !known("appendfsync"):
	case set["appendonly"] == "yes" && sync != "always":
		code := AppendFsyncNo
		if sync == "everysec" {
			code = AppendFsyncEverysec
		}
		risk(code, "appendfsync %s: after a crash of its machine it forgets the locks of the last moments", sync)
	case set["appendonly"] == "yes":
	case !known("save"):
	case set["save"] == "":
		risk(NoPersistence, "no persistence: after a restart it knows no lock, and no functions")
	default:
		risk(RDBOnly, "appendonly no: after a restart it knows the locks of its last RDB file")
	}
	if replicas > 0 && known("min-replicas-to-write") && set["min-replicas-to-write"] == "0" {
		risk(MinReplicas, "min-replicas-to-write 0: cut off from its %d replicas it goes on granting locks", replicas)
	}
	if policy := set["maxmemory-policy"]; set["maxmemory"] != "0" && known("maxmemory-policy") && policy != "noeviction" {
		risk(Eviction, "maxmemory-policy %s: it evicts locks when its memory is full", policy)
	}
	if len(unknown) > 0 {
		risk(Unknown, "some of its settings are unknown: CONFIG GET does not name %s", strings.Join(unknown, ", "))
	}
	return found
}
