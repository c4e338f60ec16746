// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const slots = 16384

// joinCluster makes one Cluster of the nodes: slots in equal ranges, replica
// i of n primaries for primary i. It blocks until every node says that the
// Cluster is ok and knows every replica.
func (d *Deployment) joinCluster(ctx context.Context) error {
	primaries := len(d.nodes) / 2
	for i, n := range d.nodes[:primaries] {
		first, last := slots*i/primaries, slots*(i+1)/primaries-1
		if err := n.run(ctx, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)); err != nil {
			return err
		}
		// Distinct epochs from the start spare the nodes a round of conflicts.
		if err := n.run(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return err
		}
	}
	if err := d.meet(ctx); err != nil {
		return err
	}
	if err := Together(d.nodes[primaries:], func(n *Node) error { return n.follow(ctx, d.nodes[slices.Index(d.nodes, n)-primaries]) }); err != nil {
		return err
	}
	if err := d.linked(ctx); err != nil {
		return err
	}
	return Together(d.nodes, func(n *Node) error {
		if err := until(ctx, func() (bool, error) {
			view, err := n.View(ctx)
			return err == nil && len(view) == primaries, nil
		}); err != nil {
			return fmt.Errorf("node %s does not see the whole Cluster: %w\n%s", n.Addr, err, tail(n.Log()))
		}
		return nil
	})
}

// meet introduces every node to every other: waiting for gossip takes longer.
func (d *Deployment) meet(ctx context.Context) error {
	for i, n := range d.nodes {
		for _, other := range d.nodes[:i] {
			err := n.run(ctx, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(other.port), strconv.Itoa(other.busPort))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// follow makes a Cluster replica once it knows its primary.
func (n *Node) follow(ctx context.Context, primary *Node) error {
	id, err := primary.id(ctx)
	if err != nil {
		return err
	}
	var refused error
	err = until(ctx, func() (bool, error) {
		refused = n.run(ctx, "CLUSTER", "REPLICATE", id)
		return refused == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, refused)
	}
	return nil
}

// id is how the other nodes of a Cluster call this one.
func (n *Node) id(ctx context.Context) (string, error) {
	m, err := n.Do(ctx, "CLUSTER", "MYID")
	if err != nil {
		return "", err
	}
	return m.ToString()
}

// View is how this node sees its Cluster: a text for each range of slots, with the primary and its replica.
// It is an error if the Cluster is down, or a replica is not known or has failed.
func (n *Node) View(ctx context.Context) (ranges []string, err error) {
	m, err := n.Do(ctx, "CLUSTER", "INFO")
	if err != nil {
		return nil, err
	}
	if state, _ := m.ToString(); !strings.Contains(state, "cluster_state:ok") {
		return nil, errors.New("the Cluster is down")
	}
	if m, err = n.Do(ctx, "CLUSTER", "SLOTS"); err != nil { // what clients read
		return nil, err
	}
	list, err := m.ToArray()
	for _, r := range list {
		// first slot, last slot, primary, replica
		entry, _ := r.ToAny()
		if parts, _ := entry.([]any); len(parts) != 4 {
			return nil, fmt.Errorf("a replica is missing: %v", entry)
		}
		ranges = append(ranges, fmt.Sprint(entry))
	}
	return ranges, err
}

// run sends a command of which only the error matters.
func (n *Node) run(ctx context.Context, command ...string) error {
	if _, err := n.Do(ctx, command...); err != nil {
		return fmt.Errorf("%s at %s: %w", strings.Join(command, " "), n.Addr, err)
	}
	return nil
}
