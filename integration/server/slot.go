// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net"
	"strconv"
)

// BeginMove lets a primary take keys of a slot from another one, which sends callers there for those
// that it does not have.
func BeginMove(ctx context.Context, slot uint16, from, to *Node) error {
	source, err := from.id(ctx)
	if err == nil {
		err = to.own(ctx, slot, "IMPORTING", source)
	}
	if err != nil {
		return err
	}
	target, err := to.id(ctx)
	if err != nil {
		return err
	}
	return from.own(ctx, slot, "MIGRATING", target)
}

// FinishMove moves the keys, and then the slot. The target learns first that it is its own: so there is no
// moment at which nobody has it. Others need not be told, they hear of it. It is safe to repeat: a key can
// be at the target if the answer to a MIGRATE was lost, and nobody has changed it there.
func FinishMove(ctx context.Context, slot uint16, from, to *Node) error {
	host, port, err := net.SplitHostPort(to.Addr)
	for err == nil {
		m, asked := from.Do(ctx, "CLUSTER", "GETKEYSINSLOT", strconv.Itoa(int(slot)), "10")
		if asked != nil {
			return asked
		}
		keys, _ := m.AsStrSlice()
		if len(keys) == 0 {
			break
		}
		// NOKEY, when they are gone meanwhile, is an answer too.
		err = from.run(ctx, append([]string{"MIGRATE", host, port, "", "0", "5000", "REPLACE", "KEYS"}, keys...)...)
	}
	if err != nil {
		return err
	}
	target, err := to.id(ctx)
	for _, n := range []*Node{to, from} {
		if err == nil {
			err = n.own(ctx, slot, "NODE", target)
		}
	}
	return err
}

// own tells a node of a Cluster how a slot stands to another node, or to itself.
func (n *Node) own(ctx context.Context, slot uint16, how, id string) error {
	return n.run(ctx, "CLUSTER", "SETSLOT", strconv.Itoa(int(slot)), how, id)
}
