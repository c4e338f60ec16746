// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
)

// newNode makes a node with a port and a place to run; it is not started.
func (d *Deployment) newNode(role Role) (*Node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	n := &Node{Addr: address(port), Role: role, port: port}
	if d.Flavour.Runtime == Container {
		n.proc, err = newContainer(d.Flavour, role == RoleSentinel)
	} else {
		n.proc, err = newLocal(d.Flavour, role == RoleSentinel)
	}
	return n, err
}

// launch starts a node for the first time and blocks until it answers.
func (n *Node) launch(ctx context.Context) error {
	err := n.proc.Put("redis.conf", n.conf)
	if err == nil {
		err = n.again(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s at %s: %w", n.Role, n.Addr, err)
	}
	return nil
}

// prepare puts the library of the Spec into its place in each server, before
// any of them runs, and lets the caller do the rest.
func (d *Deployment) prepare(spec *Spec) error {
	if spec.Preload != "" {
		const name = "preload.so"
		if err := Together(d.all(), func(n *Node) error {
			n.proc.Preload(name)
			return n.proc.Put(name, spec.Preload)
		}); err != nil {
			return err
		}
	}
	if spec.Before == nil {
		return nil
	}
	return spec.Before(d)
}

// linked blocks until the replicas of one primary follow it.
func (d *Deployment) linked(ctx context.Context) error {
	return Together(d.nodes, func(n *Node) error {
		if n.Role != RoleReplica {
			return nil
		}
		if err := until(ctx, func() (bool, error) {
			return n.Info(ctx, "replication", "master_link_status") == "up", nil
		}); err != nil {
			return fmt.Errorf("replica at %s does not follow: %w\n%s", n.Addr, err, tail(n.Log()))
		}
		return nil
	})
}
