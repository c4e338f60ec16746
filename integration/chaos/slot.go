// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/server"
)

// owns reports whether a node of a Cluster has the slot of a lock, by its own account, also if the slot is
// on its way to another one.
func owns(n *server.Node, lock string) (bool, error) {
	err := tell(n, "EXISTS", prefix+lock)
	switch {
	case err == nil || strings.HasPrefix(err.Error(), "ASK "):
		return true, nil
	case strings.HasPrefix(err.Error(), "MOVED "):
		return false, nil
	}
	return false, err
}

// between finds who has a lock, and chooses another primary for it.
func between(lock string, list []shard, pick uint64) (from, to *server.Node, _ error) {
	var others []*server.Node
	for _, s := range list {
		owned, err := owns(s.primary, lock)
		switch {
		case err != nil:
			return nil, nil, err
		case owned:
			from = s.primary
		default:
			others = append(others, s.primary)
		}
	}
	if from == nil || len(others) == 0 {
		return nil, nil, fmt.Errorf("nobody has %s, or nobody else can take it", lock)
	}
	return from, others[pick%uint64(len(others))], nil
}

// move moves the slot of a lock to a primary. Connections can be killed meanwhile, so it goes on until all
// of it is done: a slot that is left half on its way would lose keys in the next failover.
func move(lock string, from, to *server.Node) (err error) {
	slot := cluster.Slot(prefix + lock)
	until(20*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*soon)
		defer cancel()
		done, asked := owns(to, lock)
		if err = asked; err == nil && !done { // else the target cannot import it any more
			err = server.BeginMove(ctx, slot, from, to)
		}
		if err == nil {
			err = server.FinishMove(ctx, slot, from, to)
		}
		return err == nil
	})
	return err
}

// disagree says which node of a Cluster sees it otherwise than the first.
func (v *servers) disagree() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*soon)
	defer cancel()
	var first []string
	for i, n := range v.nodes {
		view, err := n.View(ctx)
		if i == 0 {
			first = view
		}
		if err == nil && !slices.Equal(view, first) {
			err = errors.New("it sees other owners of slots than " + v.nodes[0].Addr)
		}
		if err != nil {
			return n.Addr + ": " + err.Error()
		}
	}
	return ""
}
