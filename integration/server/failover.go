// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// takesOverWithin bounds the time in which a replica becomes the primary, and
// oneFailover one try: Redis gives up after five seconds when it is not elected.
const (
	takesOverWithin = 30 * time.Second
	oneFailover     = 5500 * time.Millisecond
)

// IsPrimary asks the node whether it is a primary now.
func (n *Node) IsPrimary(ctx context.Context) (bool, error) {
	role := n.Info(ctx, "replication", "role")
	if role == "" {
		return false, fmt.Errorf("server: %s does not tell its role", n.Addr)
	}
	return role == "master", nil
}

// Failover makes a Cluster's replica the primary: in good order, so that nothing
// is lost, or as CLUSTER FAILOVER does with FORCE or TAKEOVER. It first blocks
// until the replica follows its primary, and then until it is the primary.
func (n *Node) Failover(ctx context.Context, how ...string) error {
	return n.act("fail over to", func() error {
		ctx, cancel := context.WithTimeout(ctx, takesOverWithin)
		defer cancel()
		err := until(ctx, func() (bool, error) {
			if primary, _ := n.IsPrimary(ctx); primary { // a node that cannot be asked is asked again
				return false, errors.New("it is a primary")
			}
			return n.Info(ctx, "replication", "master_link_status") == "up", nil
		})
		if err != nil {
			return fmt.Errorf("it does not follow its primary: %w", err)
		}
		for ctx.Err() == nil {
			if err := n.run(ctx, append([]string{"CLUSTER", "FAILOVER"}, how...)...); err != nil {
				return err
			}
			// The others do not vote for it while they still hear of the failover before.
			once, cancel := context.WithTimeout(ctx, oneFailover)
			err = n.promoted(once)
			cancel()
			if err == nil {
				return nil
			}
		}
		return err
	})
}

// Promoted blocks until the node is a primary: it replaces one that was killed.
func (n *Node) Promoted(ctx context.Context) error {
	return n.act("wait for the promotion of", func() error {
		ctx, cancel := context.WithTimeout(ctx, takesOverWithin)
		defer cancel()
		return n.promoted(ctx)
	})
}

func (n *Node) promoted(ctx context.Context) error {
	err := until(ctx, func() (bool, error) {
		primary, _ := n.IsPrimary(ctx) // a node that cannot be asked is none yet
		return primary, nil
	})
	if err != nil {
		return fmt.Errorf("it is still a replica: %w\n%s", err, tail(n.Log()))
	}
	return nil
}
