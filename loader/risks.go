package loader

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
)

// risks says by which of its settings a node can lose locks, or grant one twice. A user who may not
// use CONFIG GET learns that, and no more.
func risks(ctx context.Context, node rueidis.Client, of cluster.Node) (found []string) {
	risk := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	set, err := node.Do(ctx, node.B().ConfigGet().Parameter("appendonly", "appendfsync", "save", "min-replicas-to-write", "maxmemory", "maxmemory-policy").Build()).AsStrMap()
	if err != nil {
		risk("its settings are unknown: %v", explain(err))
		return found
	}
	switch {
	case set["appendonly"] == "yes" && set["appendfsync"] != "always":
		risk("appendfsync %s: after a crash of its machine it forgets the locks of the last moments", set["appendfsync"])
	case set["appendonly"] == "yes":
	case set["save"] == "":
		risk("no persistence: after a restart it knows no lock, and no functions")
	default:
		risk("appendonly no: after a restart it knows the locks of its last RDB file")
	}
	if of.Role == cluster.Primary && set["min-replicas-to-write"] == "0" {
		if n, err := replicas(ctx, node); err == nil && n > 0 {
			risk("min-replicas-to-write 0: cut off from its %d replicas it goes on granting locks", n)
		}
	}
	if policy := set["maxmemory-policy"]; policy != "noeviction" && set["maxmemory"] != "0" {
		risk("maxmemory-policy %s: it evicts locks when its memory is full", policy)
	}
	return found
}

// replicas counts those that are connected.
func replicas(ctx context.Context, node rueidis.Client) (n int, err error) {
	text, err := node.Do(ctx, node.B().Info().Section("replication").Build()).ToString()
	if err == nil {
		_, text, _ = strings.Cut(text, "connected_slaves:")
		_, err = fmt.Sscan(text, &n)
	}
	return n, err
}
