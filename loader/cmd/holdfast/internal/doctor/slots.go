// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cluster"
)

// slots looks at a Cluster as this node sees it.
func (n *node) slots(ctx context.Context) {
	if !n.inCluster() {
		return
	}
	if n.set["cluster-require-full-coverage"] == "yes" {
		n.find("full-coverage", configSet("cluster-require-full-coverage", "no"),
			"cluster-require-full-coverage is yes")
	}
	if n.set["cluster-allow-replica-migration"] == "yes" {
		n.find("replica-migration", configSet("cluster-allow-replica-migration", "no"),
			"cluster-allow-replica-migration is yes")
	}
	text, err := n.do(ctx, "CLUSTER", "INFO").ToString()
	if n.sees("CLUSTER INFO", err) && fields(text)["cluster_state"] != "ok" {
		n.find("cluster-down", "redis-cli --cluster check "+n.door()+" says what is missing",
			"cluster_state is %s", fields(text)["cluster_state"])
	}
	if text, err = n.do(ctx, "CLUSTER", "NODES").ToString(); !n.sees("CLUSTER NODES", err) {
		return
	}
	free, moving := coverage(text)
	if len(free) > 0 {
		n.find("slots-uncovered", "bring the primary of these slots back, or redis-cli --cluster fix "+n.door(),
			"no node has the slots %s", strings.Join(free, " "))
	}
	if len(moving) > 0 {
		n.find("slots-moving", "let the move end; if nobody moves them: redis-cli --cluster fix "+n.door(),
			"slots on their way: %s", strings.Join(moving, " "))
	}
}

// door is one address of the Cluster, the same for all of its nodes: what each of them says is said once.
func (n *node) door() string {
	if known := slices.Sorted(maps.Keys(n.of.Client.Nodes())); len(known) > 0 {
		return known[0]
	}
	return n.addr
}

// coverage reads CLUSTER NODES: ranges of slots that no node has, and this node's slots on their way. A node
// without an address was replaced by an empty one, and what it had is gone.
func coverage(reply string) (free, moving []string) {
	var has [cluster.Slots]bool
	for line := range strings.Lines(reply) {
		words := strings.Fields(line)
		if len(words) > 2 && strings.Contains(words[2], "noaddr") {
			continue
		}
		for _, word := range words[min(8, len(words)):] {
			if strings.HasPrefix(word, "[") {
				moving = append(moving, word)
				continue
			}
			low, high, isRange := strings.Cut(word, "-")
			if !isRange {
				high = low
			}
			first, err1 := strconv.Atoi(low)
			last, err2 := strconv.Atoi(high)
			for slot := first; err1 == nil && err2 == nil && slot >= 0 && slot <= min(last, len(has)-1); slot++ {
				has[slot] = true
			}
		}
	}
	for slot := 0; slot < len(has); slot++ {
		if has[slot] {
			continue
		}
		end := len(has) - 1
		if next := slices.Index(has[slot:], true); next > 0 {
			end = slot + next - 1
		}
		free = append(free, fmt.Sprintf("%d-%d", slot, end))
		slot = end
	}
	return free, moving
}
