// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast/cluster"
)

func (n *node) replication(context.Context) {
	if n.role == cluster.Replica {
		n.replica()
		return
	}
	want := number(n.set, "min-replicas-to-write")
	if want > 0 && n.set["min-replicas-max-lag"] == "0" {
		n.find("min-replicas-lag", configSet("min-replicas-max-lag", "5"), "min-replicas-max-lag is 0")
	}
	// The field is there only while the setting is on.
	if good := number(n.info, "min_slaves_good_slaves"); good >= 0 && good < want {
		n.find("min-replicas-unmet",
			"bring the replicas back. Only if no other server was promoted (ROLE): "+configSet("min-replicas-to-write", "0"),
			"min-replicas-to-write is %d, and %d replicas are near enough", want, good)
	}
	if n.info["connected_slaves"] == "0" && (n.inCluster() || n.of.Master != "") && n.info["role"] == "master" {
		n.find("no-replica", "give it a replica: REPLICAOF, in a Cluster CLUSTER REPLICATE, at another server",
			"no replica is connected")
	}
}

func (n *node) replica() {
	if n.info["master_link_status"] == "down" {
		n.find("replica-link", "look at the replica's log: the primary's address, masteruser, masterauth, TLS",
			"its link to the primary is down, for %s s", n.info["master_link_down_since_seconds"])
	}
	if n.set["replica-read-only"] == "no" {
		n.find("replica-writable", configSet("replica-read-only", "yes"), "replica-read-only is no")
	}
}

// successors looks for replicas that would be worse primaries than those of their deployment.
func (e *examination) successors(context.Context) {
	const on = "min-replicas-to-write"
	for _, n := range e.nodes {
		primary := slices.IndexFunc(e.nodes, func(p *node) bool {
			return p.of == n.of && p.role == cluster.Primary && number(p.set, on) > 0
		})
		if n.role == cluster.Replica && n.set[on] == "0" && primary >= 0 {
			p := e.nodes[primary]
			e.find("min-replicas-differ", n.addr, configSet(on, p.set[on], "min-replicas-max-lag", p.set["min-replicas-max-lag"]),
				"%s is 0, and %s at the primary %s", on, p.set[on], p.addr)
		}
	}
}
