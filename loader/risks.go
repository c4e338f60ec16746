// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/loader/internal/risk"
)

// risks says by which of its settings a node can lose locks, or grant one twice. A user who may not
// use CONFIG GET learns that, and no more.
func risks(ctx context.Context, node rueidis.Client, of cluster.Node) (found []string) {
	set, err := node.Do(ctx, node.B().ConfigGet().Parameter(risk.Settings...).Build()).AsStrMap()
	if err != nil {
		return []string{fmt.Sprintf("its settings are unknown: CONFIG GET: %v", err)}
	}
	connected := 0
	if of.Role == cluster.Primary {
		if n, err := replicas(ctx, node); err == nil {
			connected = n
		}
	}
	for _, r := range risk.Of(set, connected) {
		found = append(found, r.Text)
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
