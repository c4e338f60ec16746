// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Role says whether a node takes writes.
type Role string

// The two roles of a node. A node's role can change at any moment (failover): what Topology
// returned is how it was.
const (
	Primary Role = "primary"
	Replica Role = "replica"
)

// Node is one server of a deployment.
type Node struct {
	ID string // the node's id in a cluster, "" elsewhere
	// host:port, as the client knows it, or as the deployment announces it; of a node that has none, its ID
	Addr string
	Role Role // Primary or Replica
	// of a replica: its primary's Addr, or "" if that is not known; "" of a primary
	Primary string
	// of a primary in a cluster: its ranges of hash slots, first and last included; may be none
	Slots [][2]uint16
	Down  bool // the deployment itself says that the node cannot be reached
}

// Topology asks a deployment which nodes it has and returns the primaries before the replicas, each
// sorted by address. It blocks for one round trip, or two, and returns an error if no node that the
// client is connected to answered in time.
//
// In a cluster it is the view of one node, from CLUSTER NODES, which, unlike CLUSTER SLOTS, also
// lists primaries that have no slots (yet). Elsewhere it is what ROLE says: a primary names the
// replicas that are connected to it, and a replica names its primary; neither sees replicas of
// replicas, and the primary lists no replica that is disconnected. Addresses are those that the
// nodes announce, which need not be reachable from here; where the client is connected to a node,
// its address is the client's, a key of client.Nodes().
//
// The user needs the permission +cluster|nodes in a cluster, +role elsewhere. Safe for concurrent
// use; keeps nothing.
func Topology(ctx context.Context, client rueidis.Client) ([]Node, error) {
	var nodes []Node
	var err error
	if client.Mode() == rueidis.ClientModeCluster {
		nodes, err = fromClusterNodes(ctx, client)
	} else {
		nodes, err = fromRoles(ctx, client)
	}
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	slices.SortFunc(nodes, func(a, b Node) int {
		if a.Role != b.Role {
			return strings.Compare(string(a.Role), string(b.Role)) // "primary" before "replica"
		}
		return strings.Compare(a.Addr, b.Addr)
	})
	return nodes, nil
}

// addrs returns the addresses of the nodes that a client is connected to, in a fixed order.
func addrs(client rueidis.Client) []string {
	return slices.Sorted(maps.Keys(client.Nodes()))
}

func noAnswer(failed []error) error {
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return errors.New("the client is connected to no node: of a Cluster that has given no slots it finds none")
}

// fromRoles asks every node that the client is connected to, all at once: one, or the primary and
// the replicas that the client was given.
func fromRoles(ctx context.Context, client rueidis.Client) ([]Node, error) {
	connected := addrs(client)
	answers := make([][]Node, len(connected))
	failed := make([]error, len(connected))
	var all sync.WaitGroup
	for i, addr := range connected {
		node := client.Nodes()[addr]
		all.Go(func() {
			if node == nil {
				return // the client left it just now
			}
			answers[i], failed[i] = role(ctx, addr, node)
			if failed[i] != nil {
				failed[i] = fmt.Errorf("%s: ROLE: %w", addr, failed[i])
			}
		})
	}
	all.Wait()
	found := map[string]Node{}
	for _, nodes := range answers {
		for i, node := range nodes {
			// What a node says about itself, the first entry, counts more than what another one
			// says about it.
			if _, known := found[node.Addr]; i == 0 || !known {
				found[node.Addr] = node
			}
		}
	}
	if len(found) == 0 {
		return nil, noAnswer(failed)
	}
	return slices.Collect(maps.Values(found)), nil
}

// role returns the node itself first, then those that it names.
func role(ctx context.Context, addr string, node rueidis.Client) ([]Node, error) {
	reply, err := node.Do(ctx, node.B().Role().Build()).ToArray()
	if err != nil {
		return nil, err
	}
	if len(reply) < 3 {
		return nil, fmt.Errorf("unexpected reply of %d elements", len(reply))
	}
	switch kind, _ := reply[0].ToString(); kind {
	case "master": // ["master", offset, [[host, port, offset], ...]]
		nodes := []Node{{Addr: addr, Role: Primary}}
		replicas, err := reply[2].ToArray()
		for _, replica := range replicas {
			if fields, err := replica.AsStrSlice(); err == nil && len(fields) >= 2 {
				nodes = append(nodes, Node{Addr: net.JoinHostPort(fields[0], fields[1]), Role: Replica, Primary: addr})
			}
		}
		return nodes, err
	case "slave": // ["slave", host, port, state, offset]
		host, _ := reply[1].ToString()
		port, err := reply[2].AsInt64()
		primary := net.JoinHostPort(host, strconv.FormatInt(port, 10))
		// The other one is taken for a primary until somebody asks it: it may be a replica itself.
		return []Node{{Addr: addr, Role: Replica, Primary: primary}, {Addr: primary, Role: Primary}}, err
	default:
		return nil, fmt.Errorf("neither a primary nor a replica: %q", kind)
	}
}

// hedge is how long a node may take to answer before the next one is asked too.
const hedge = 250 * time.Millisecond

type answer struct {
	nodes []Node
	err   error
}

// fromClusterNodes asks one node after the other, without waiting long for one that hangs, and
// believes the first that answers.
//
// It does not ask all at once and cancel the slower ones: rueidis opens a connection with the
// context of the call that needs it first, so cancelling that call would fail those of others that
// wait for the same connection.
func fromClusterNodes(ctx context.Context, client rueidis.Client) ([]Node, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connected := client.Nodes()
	answers := make(chan answer, len(connected))
	var failed []error
	waiting := 0
	for addr, node := range connected {
		waiting++
		go func() { answers <- askClusterNodes(ctx, addr, node, connected) }()
		timer := time.NewTimer(hedge)
		select {
		case got := <-answers:
			timer.Stop()
			waiting--
			if got.err == nil {
				return got.nodes, nil
			}
			failed = append(failed, got.err)
		case <-timer.C:
		}
	}
	for ; waiting > 0; waiting-- {
		got := <-answers
		if got.err == nil {
			return got.nodes, nil
		}
		failed = append(failed, got.err)
	}
	return nil, noAnswer(failed)
}

func askClusterNodes(ctx context.Context, addr string, node rueidis.Client, connected map[string]rueidis.Client) answer {
	reply, err := node.Do(ctx, node.B().ClusterNodes().Build()).ToString()
	if err != nil {
		return answer{nil, fmt.Errorf("%s: CLUSTER NODES: %w", addr, err)}
	}
	nodes, err := parseClusterNodes(reply, addr, connected)
	return answer{nodes, err}
}
