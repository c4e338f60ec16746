// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
)

const sentinels, quorum = 3, 2

// planSentinels makes the sentinels. Each is told of the replicas and of the
// other sentinels in its configuration: finding them would take seconds.
func (d *Deployment) planSentinels() error {
	d.SentinelMaster = SentinelMaster
	ids := make([]string, sentinels)
	for i := range ids {
		n, err := d.newNode(RoleSentinel)
		if err != nil {
			return err
		}
		ids[i] = fmt.Sprintf("%016x%016x%08x", rand.Uint64(), rand.Uint64(), rand.Uint32())
		d.sentinels = append(d.sentinels, n)
	}
	for i, n := range d.sentinels {
		n.conf = n.placeConf() + d.sentinelConf(i, ids)
	}
	return nil
}

// watch starts the sentinels, and blocks until each has links to all servers
// and to the other sentinels.
func (d *Deployment) watch(ctx context.Context) error {
	if err := Together(d.sentinels, func(n *Node) error { return n.launch(ctx) }); err != nil {
		return err
	}
	return Together(d.sentinels, func(n *Node) error {
		if err := until(ctx, func() (bool, error) { return n.watches(ctx, len(d.nodes)-1), nil }); err != nil {
			return fmt.Errorf("sentinel %s does not see all servers: %w\n%s", n.Addr, err, tail(n.Log()))
		}
		return nil
	})
}

func (d *Deployment) sentinelConf(self int, ids []string) string {
	var c conf
	c.set("sentinel myid", ids[self])
	about := func(directive, value string) { c.set("sentinel "+directive, SentinelMaster+" "+value) }
	about("monitor", fmt.Sprintf("127.0.0.1 %d %d", d.nodes[0].port, quorum))
	about("down-after-milliseconds", "1000")
	about("failover-timeout", "3000")
	about("parallel-syncs", "2")
	for _, r := range d.nodes[1:] {
		about("known-replica", "127.0.0.1 "+strconv.Itoa(r.port))
	}
	for i, s := range d.sentinels {
		if i != self {
			about("known-sentinel", fmt.Sprintf("127.0.0.1 %d %s", s.port, ids[i]))
		}
	}
	return c.String()
}

// watches reports whether this sentinel has links to the primary, to all
// replicas and to all other sentinels.
func (n *Node) watches(ctx context.Context, replicas int) bool {
	if m, err := n.Do(ctx, "SENTINEL", "CKQUORUM", SentinelMaster); err != nil || m.IsNil() {
		return false
	}
	return n.wellFlagged(ctx, "REPLICAS", "slave", replicas) && n.wellFlagged(ctx, "SENTINELS", "sentinel", sentinels-1)
}

// wellFlagged reports whether as many entries as wanted have just this flag: none
// of s_down, disconnected and the like.
func (n *Node) wellFlagged(ctx context.Context, list, flag string, want int) bool {
	m, err := n.Do(ctx, "SENTINEL", list, SentinelMaster)
	if err != nil {
		return false
	}
	entries, err := m.ToArray()
	if err != nil || len(entries) != want {
		return false
	}
	for _, e := range entries {
		if fields, err := e.AsStrMap(); err != nil || fields["flags"] != flag {
			return false
		}
	}
	return true
}
