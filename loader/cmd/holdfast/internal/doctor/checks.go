// SPDX-License-Identifier: Apache-2.0

package doctor

import "context"

// check is a look at one node, or at all deployments.
type check[T any] struct {
	what string
	look func(T, context.Context)
}

// nodeChecks are made at all nodes side by side.
var nodeChecks = []check[*node]{
	{"the server's version", (*node).version},
	{"the engine that runs libraries", (*node).engine},
	{"commands that are renamed or disabled", (*node).commands},
	{"settings of memory and persistence", (*node).settings},
	{"replication", (*node).replication},
	{"the Cluster's state and slots", (*node).slots},
	{"rights of this user", (*node).rights},
	{"client tracking", (*node).tracking},
	{"round trips", (*node).roundTrips},
	{"slow scripts and latency", (*node).latency},
	{"connections and their limits", (*node).connections},
}

// wholeChecks are made when the nodes have been looked at.
var wholeChecks = []check[*examination]{
	{"keys under the prefix", (*examination).keys},
	{"messages from waiter to waiter", (*examination).messages},
	{"settings that a replica takes over with", (*examination).successors},
	{"sentinels", (*examination).sentinels},
	{"clocks of the nodes and of this machine", (*examination).clocks},
}

// checked are all looks, in words.
func checked() []string {
	words := []string{"the library at every node"}
	for _, c := range nodeChecks {
		words = append(words, c.what)
	}
	for _, c := range wholeChecks {
		words = append(words, c.what)
	}
	return words
}
