// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"regexp"

	"github.com/holdfast-go/holdfast/functions"
)

// identity is what tells one of our libraries from others' at a node.
type identity struct {
	name      string
	functions []string
	mark      string // the function by which it is known to be ours
	remembers bool   // it has a memory, which FUNCTION LOAD REPLACE ends
}

var identities = []identity{
	{name: functions.Library, functions: functions.Names(), mark: functions.ReadVersion, remembers: true},
	{name: functions.FencedLibrary, functions: functions.FencedNames(), mark: functions.ReadFencedVersion},
}

var nameLine = regexp.MustCompile(`^#!lua name=(\w+)\n`)

// identify says which of our libraries a source is.
func identify(source string) (id identity, known bool) {
	found := nameLine.FindStringSubmatch(source)
	if found == nil {
		return identity{}, false
	}
	for _, id := range identities {
		if id.name == found[1] {
			return id, true
		}
	}
	return identity{}, false
}
