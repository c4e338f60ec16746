// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/loader"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// deploymentsOf sorts the addresses. The nodes of a Cluster are one deployment, and so are all sentinels.
// A single server is one of its own. Missed are the addresses that are none.
func deploymentsOf(ctx context.Context, cfg *config) (deployments []rueidis.ClientOption, missed []miss) {
	if cfg.master != "" {
		return []rueidis.ClientOption{cfg.option(cfg.addrs...)}, nil
	}
	there := settled(ctx, cfg)
	for _, addr := range slices.Concat(there.primaries, there.replicas) {
		single := cfg.option(addr)
		single.ForceSingleClient = true // else rueidis needs the right to CLUSTER SLOTS
		deployments = append(deployments, single)
	}
	for _, c := range there.clusters {
		deployments = append(deployments, cfg.option(c.addrs...)) // found by any of its nodes
	}
	for i, m := range there.missed {
		if len(there.clusters) > 0 && !m.answered {
			there.missed[i].err = fmt.Errorf("%w: %w", m.err, errPresumed)
		}
	}
	return deployments, there.missed
}

// lookAgain is between two looks at a Cluster that is being made.
const lookAgain = 100 * time.Millisecond

// settled gives a Cluster that is being made half of the time, if it is to be loaded.
func settled(ctx context.Context, cfg *config) servers {
	again, end := time.NewTicker(lookAgain), time.After(cfg.timeout/2)
	defer again.Stop()
	for {
		there := look(ctx, cfg)
		if cfg.command != "load" || !there.unmade() {
			return there
		}
		select {
		case <-again.C:
		case <-end:
			return there
		case <-ctx.Done():
			return there
		}
	}
}

// servers are the addresses by what is there.
type servers struct {
	clusters            []oneCluster
	primaries, replicas []string // of no Cluster
	stranger            bool     // one of the replicas is another primary's
	missed              []miss
}

// oneCluster is those nodes of a Cluster that are named.
type oneCluster struct {
	addrs []string
	nodes []cluster.Node // all that they know, perhaps twice
	slots int            // so many are given to nodes, as each of them knows
}

// miss is an address at which no deployment was found.
type miss struct {
	addr     string
	err      error
	answered bool // there is a server
}

var (
	errSentinel = errors.New("this is a Sentinel: name the primary that it watches with --sentinel-master")
	errNoSlots  = errors.New("the node knows of no slots, so it is in no Cluster: take its address away, or join it to one")
	errPresumed = errors.New("taken for a node of the Cluster")
	errUnseen   = errors.New("this is a Cluster, and the user may not see its nodes: it needs +cluster|nodes +cluster|slots " +
		"+cluster|shards (\"holdfast acl --for loader --cluster\")")
)

// refused are the errors of servers that answer and refuse, and that no Cluster of ours names: of another
// deployment, perhaps, which others who have its password would take. One that is in no Cluster has no locks.
func (s *servers) refused() error {
	return errorsOf(slices.DeleteFunc(slices.Clone(s.missed), func(m miss) bool {
		return !m.answered || errors.Is(m.err, errNoSlots)
	}), func(addr string) bool {
		return slices.ContainsFunc(s.clusters, func(c oneCluster) bool {
			return slices.ContainsFunc(c.nodes, func(n cluster.Node) bool { return n.Addr == addr })
		})
	})
}

// errorsOf are those of the addresses that are not known by now: another node of a Cluster has named them.
func errorsOf(missed []miss, known func(addr string) bool) error {
	var left []error
	for _, m := range missed {
		if !known(m.addr) {
			left = append(left, m.err)
		}
	}
	return errors.Join(left...)
}

// look asks all addresses at once: those that hang cost the time of one.
func look(ctx context.Context, cfg *config) (there servers) {
	var addrs []string
	for _, addr := range cfg.addrs {
		if !slices.Contains(addrs, addr) { // the shell's completion reads flags twice
			addrs = append(addrs, addr)
		}
	}
	type greeting struct {
		said  map[string]string
		nodes []cluster.Node
		err   error
	}
	greetings := make([]greeting, len(addrs))
	var all sync.WaitGroup
	for i, addr := range addrs {
		all.Go(func() {
			g := &greetings[i]
			g.said, g.nodes, g.err = greet(ctx, cfg, addr)
		})
	}
	all.Wait()
	history := "" // what a primary says: its replication id, and the one before
	for i, addr := range addrs {
		said, nodes, err := greetings[i].said, greetings[i].nodes, greetings[i].err
		mode, alone := said["mode"], len(addrs) == 1
		switch {
		case mode == "sentinel":
			err = errSentinel
		case mode == "cluster" && alone:
			err = nil // there is nothing to compare it with
		case mode == "cluster" && err == nil && slotsOf(nodes) == 0:
			err = errNoSlots
		}
		switch {
		case err != nil:
			var refused *rueidis.RedisError
			refuses := errors.As(err, &refused)
			busy := refuses && (refused.IsLoading() || strings.HasPrefix(refused.Error(), "BUSY ")) // as one that is silent
			there.missed = append(there.missed, miss{addr, fmt.Errorf("%s: %w", addr, err), (refuses || mode != "") && !busy})
		case mode == "cluster":
			there.join(addr, nodes)
		case said["role"] != "master":
			there.replicas = append(there.replicas, addr)
		default:
			there.primaries = append(there.primaries, addr)
			history = said[replication]
		}
	}
	for _, g := range greetings {
		info := g.said[replication] // a replica that is not in step may have an id of its own
		_, id, _ := strings.Cut(info, "\nmaster_replid:")
		id, _, _ = strings.Cut(id, "\r")
		if history != "" && strings.Contains(info, "\nmaster_link_status:up") && !strings.Contains(history, id) {
			there.stranger = true
		}
	}
	return there
}

// join adds a node to the Cluster of those that know it, or a node that it knows. It goes by their ids: they
// may announce other addresses than those that are named.
func (s *servers) join(addr string, nodes []cluster.Node) {
	c := oneCluster{[]string{addr}, nodes, slotsOf(nodes)}
	s.clusters = slices.DeleteFunc(s.clusters, func(other oneCluster) bool {
		same := slices.ContainsFunc(nodes, func(n cluster.Node) bool {
			return slices.ContainsFunc(other.nodes, func(o cluster.Node) bool { return o.ID == n.ID })
		})
		if same {
			c = oneCluster{append(other.addrs, c.addrs...), append(other.nodes, c.nodes...), min(other.slots, c.slots)}
		}
		return same
	})
	s.clusters = append(s.clusters, c)
}

// unmade reports whether a Cluster is being made: until all of its nodes know of all slots, one may not know
// another. What a user may not see is no sign of that.
func (s *servers) unmade() bool {
	return slices.ContainsFunc(s.missed, func(m miss) bool { return errors.Is(m.err, errNoSlots) }) ||
		slices.ContainsFunc(s.clusters, func(c oneCluster) bool { return c.nodes != nil && c.slots < cluster.Slots })
}

func slotsOf(nodes []cluster.Node) (slots int) {
	for _, n := range nodes {
		for _, r := range n.Slots {
			slots += int(r[1]) - int(r[0]) + 1
		}
	}
	return slots
}

// member lets Topology ask a node of a Cluster what it knows, and no other one.
type member struct{ rueidis.Client }

func (member) Mode() rueidis.ClientMode { return rueidis.ClientModeCluster }

// greet asks what is at an address, and a Cluster's node which nodes it knows.
func greet(ctx context.Context, cfg *config, addr string) (said map[string]string, nodes []cluster.Node, err error) {
	client, err := within(ctx, func() (rueidis.Client, error) { return loader.Dialer(cfg.option(addr))(ctx, addr) })
	if err != nil {
		return nil, nil, cfg.explainConnect(err)
	}
	defer client.Close()
	if said, err = locks.Hello(ctx, client); err != nil {
		return nil, nil, cfg.explainConnect(err)
	}
	if said["mode"] == "cluster" {
		nodes, err = cluster.Topology(ctx, member{client})
	} else if len(cfg.addrs) > 1 {
		said[replication], _ = client.Do(ctx, client.B().Info().Section(replication).Build()).ToString()
	}
	return said, nodes, err
}

const replication = "replication"

// explainConnect adds to the error of a connection what can be done about it. A sentinel's reply
// cannot be told from a server's here.
func (c *config) explainConnect(err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("connecting: %w", err)
	}
	reply, ok := rueidis.IsRedisErr(err)
	if !ok {
		hint := "check --addr, and --tls if the server wants it"
		if dialing := (*net.OpError)(nil); errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &dialing) {
			hint = "it takes connections and does not answer: it hangs, or wants --tls"
			if c.tls != nil {
				hint = "it takes connections and does not answer: it hangs, or has no TLS"
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) { // rueidis drops the text of -DENIED
			hint = "it ends connections: it is in protected mode, has as many clients as maxclients lets in, or wants --tls"
		}
		return fmt.Errorf("connecting: %w (%s)", err, hint)
	}
	who, text := c.credentials(), reply.Error()
	switch {
	case strings.HasPrefix(text, "WRONGPASS"):
		return fmt.Errorf("wrong user or password: %w (check %s)", reply, who)
	case strings.HasPrefix(text, "NOAUTH") && c.password == "":
		return fmt.Errorf("the server wants a password: %w (set %s)", reply, who)
	case strings.HasPrefix(text, "NOAUTH"):
		return fmt.Errorf("wrong password: %w (check %s)", reply, who)
	case strings.HasPrefix(text, "NOPERM"):
		return fmt.Errorf("connecting: %w (check %s)", reply, who)
	case strings.Contains(text, noMaster):
		return fmt.Errorf("%w (check --sentinel-master)", reply)
	case strings.Contains(text, noSentinel):
		return fmt.Errorf("connecting: %w (%s)", reply, hintSentinel)
	}
	return fmt.Errorf("connecting: %w", reply)
}

// noMaster is what a sentinel says to a name that it does not know.
const noMaster = "No such master with that name"

// noSentinel is what a server says that is none.
const (
	noSentinel   = "unknown command 'SENTINEL'"
	hintSentinel = "this is no Sentinel: beside --sentinel-master, --addr names the sentinels"
)

// credentials are where a user and a password come from.
func (c *config) credentials() string {
	if c.master == "" {
		return "--user and HOLDFAST_PASSWORD"
	}
	return "--user and HOLDFAST_PASSWORD, at the sentinels --sentinel-user and HOLDFAST_SENTINEL_PASSWORD"
}
