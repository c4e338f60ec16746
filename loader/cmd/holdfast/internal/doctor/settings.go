// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/loader/internal/risk"
)

// mends of the risks that verify names too.
var mends = map[risk.Code]string{
	risk.NoPersistence:       configSet("appendonly", "yes", "appendfsync", "always"),
	risk.RDBOnly:             configSet("appendonly", "yes", "appendfsync", "always"),
	risk.AppendFsyncNo:       configSet("appendfsync", "always"),
	risk.AppendFsyncEverysec: configSet("appendfsync", "always") + ", or Config.Guard at the clients",
	risk.MinReplicas:         configSet("min-replicas-to-write", "1", "min-replicas-max-lag", "5"),
	risk.Eviction:            configSet("maxmemory-policy", "noeviction"),
	risk.Unknown:             "ask whoever runs the server, see the table in docs/guarantees.md",
}

// full is the share of maxmemory at which a warning is due.
const full = 0.9

func (n *node) settings(context.Context) {
	if n.refused["CONFIG GET"] == "" {
		n.risks()
	}
	used, most := number(n.info, "used_memory"), number(n.info, "maxmemory")
	if most > 0 && float64(used) > full*float64(most) {
		n.find("memory-full", "raise maxmemory, or delete what is not needed",
			"%d of %d bytes of memory are used", used, most)
	}
	for name, what := range map[string]string{
		"rdb_last_bgsave_status":    "the last RDB file could not be written",
		"aof_last_write_status":     "the AOF cannot be written",
		"aof_last_bgrewrite_status": "the AOF could not be rewritten",
	} {
		if n.info[name] == "err" {
			n.find("persistence-failing", "look at the server's log, and at the disk that has its dir", "%s", what)
		}
	}
}

func (n *node) risks() {
	replicas := 0
	if n.role == cluster.Primary {
		replicas = int(max(0, number(n.info, "connected_slaves")))
	}
	for _, r := range risk.Of(n.set, replicas) {
		code := string(r.Code)
		if r.Code == risk.MinReplicas && n.inCluster() {
			code = "min-replicas-cluster"
		}
		n.find(code, mends[r.Code], "%s", r.Text)
	}
}
