// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// deed does a fault of servers, with rests in between.
type deed func(rest func(time.Duration)) error

// plan chooses where a fault strikes.
func (v *servers) plan(k kind, random *rand.Rand) (do deed, target string) {
	if v.shape.quorum() {
		return v.planVoters(k, random)
	}
	pick, down := random.Uint64(), time.Duration(random.Float64()*float64(700*time.Millisecond))
	lock := lockNames[random.IntN(len(lockNames))]
	list := v.shards()
	if len(list) == 0 {
		return func(func(time.Duration)) error { return errors.New("no primary answers") }, ""
	}
	s := list[pick%uint64(len(list))]
	primary, replica := s.primary, (*server.Node)(nil)
	if len(s.replicas) > 0 {
		replica = s.replicas[(pick>>8)%uint64(len(s.replicas))]
	}
	succeeded := func(begin, end func() error) deed {
		return func(func(time.Duration)) error { return errors.Join(begin(), v.succeeded(s), end()) }
	}
	failover := func(how ...string) deed {
		return func(func(time.Duration)) error { return replica.Failover(context.Background(), how...) }
	}
	target = primary.Addr
	switch k {
	case serverPause:
		do = nodes{primary}.away(min(down, 500*time.Millisecond), (*server.Node).Pause, (*server.Node).Resume)
	case serverRestart, serverForget:
		do = nodes{primary}.away(down, (*server.Node).Kill, (*server.Node).Restart)
	case replicaRestart:
		target = replica.Addr
		do = nodes{replica}.away(down, (*server.Node).Kill, (*server.Node).Restart)
	case replicaKill:
		do = func(func(time.Duration)) error { return tell(primary, "CLIENT", "KILL", "TYPE", "replica") }
	case failoverOrder:
		do = failover()
	case failoverForce:
		do = failover("FORCE")
	case failoverTake:
		do = failover("TAKEOVER")
	case failoverAsk:
		do = func(func(time.Duration)) error {
			if err := tell(v.deployment.Sentinels()[0], "SENTINEL", "FAILOVER", server.SentinelMaster); err != nil {
				return err
			}
			return v.succeeded(s)
		}
	case failoverKill:
		do = succeeded(primary.Kill, primary.Restart)
	case failoverPause:
		do = succeeded(primary.Pause, primary.Resume)
	case failoverStale:
		do = func(rest func(time.Duration)) error { return v.killAhead(s, 300*time.Millisecond+down, rest) }
	case slotMove:
		from, to, err := between(lock, list, pick>>16)
		if err != nil {
			return func(func(time.Duration)) error { return err }, lock
		}
		target = fmt.Sprintf("slot of %s from %s to %s", lock, from.Addr, to.Addr)
		do = func(func(time.Duration)) error { return move(lock, from, to) }
	}
	return do, target
}

// planVoters chooses servers of a quorum, and for how long they are away: now and then for longer than
// a lease.
func (v *servers) planVoters(k kind, random *rand.Rand) (do deed, target string) {
	n := len(v.nodes) / 2
	switch k {
	case majorityPause, majorityRestart, majorityForget:
		n = len(v.nodes)/2 + 1 + random.IntN(n+1)
	default:
		n = 1 + random.IntN(n)
	}
	x := random.Float64()
	away := time.Duration(x * x * x * float64(votingLongest))
	var list nodes
	for _, i := range random.Perm(len(v.nodes))[:n] {
		list = append(list, v.nodes[i])
	}
	begin, end := (*server.Node).Kill, (*server.Node).Restart
	switch k {
	case serverPause, majorityPause:
		begin, end = (*server.Node).Pause, (*server.Node).Resume
	case serverForget, majorityForget:
		if end = (*server.Node).Replace; random.IntN(2) == 0 {
			return func(func(time.Duration)) error { return list.each(empty) }, fmt.Sprintf("%v at once", list)
		}
	}
	return list.away(away, begin, end), fmt.Sprintf("%v for %v", list, away)
}

// empty leaves a server as one that came back empty before anybody noticed. A busy machine takes longer
// to start one than leases last. The library goes first: without it nobody gets a lock, and with its
// memory nobody may lose one.
func empty(n *server.Node) error {
	if err := tell(n, "FUNCTION", "FLUSH"); err != nil {
		return err
	}
	return tell(n, "FLUSHALL")
}

// nodes are some servers.
type nodes []*server.Node

// away is a deed of which servers are back after a while.
func (l nodes) away(d time.Duration, begin, end func(*server.Node) error) deed {
	return func(rest func(time.Duration)) error {
		err := l.each(begin)
		rest(d)
		return errors.Join(err, l.each(end))
	}
}

// each does something to all at once.
func (l nodes) each(do func(*server.Node) error) error { return server.Together(l, do) }

// tell is done when all servers do it.
func (l nodes) tell(command ...string) error {
	return l.each(func(n *server.Node) error { return tell(n, command...) })
}

func (l nodes) String() string {
	var addrs []string
	for _, n := range l {
		addrs = append(addrs, n.Addr)
	}
	return strings.Join(addrs, " ")
}
