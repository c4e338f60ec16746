// SPDX-License-Identifier: Apache-2.0

// Package quorum makes clients for locks on a majority of several independent servers, as if they were
// one. Two majorities have a server in common, and one server gives a lock to one owner at a time. The
// algorithm is that of Redlock
// (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/), with three changes:
//
//   - A server that forgot what it had granted does not vote until the leases that it may have
//     forgotten are over (the guard of functions/README.md).
//   - The token of the lock is the one in the middle of those of all servers, which a majority knows;
//     where some do not answer, the others raise theirs before the holder gets it. So tokens grow from
//     holder to holder, whatever the clocks of the servers say; but a server that loses its memory has
//     only its clock, and Guard, to be above the tokens that it forgot.
//   - Of those who come at once the one goes on that has the vote of one server, which the lock's name says.
//     Where others were met lately that server is asked before the others, and without its vote they are
//     not. So they do not split the votes among themselves.
package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/internal/dial"
	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/redis/rueidis"
)

// Open is client.Open for locks on a majority of 3, 5, 7 or 9 independent servers: none is a replica
// of another, and a minority may be lost at any time. A lock outlives that without a pause. All
// clients give the same servers in the same order, and the same Guard. Code that uses a lock does not
// change.
//
// An acquisition takes one round trip, to all servers at once. Where others wanted the lock within the last
// second one server is asked first, and where some do not answer another round lets a majority learn the
// token, so that tokens grow from holder to holder. WithOwner and Replicas are ErrArgument, goroutines
// of one process do not pass a lock on among themselves, and there is no client-side caching. A server
// that comes back empty does not vote for Config.Guard, which is the Lease by default, counted from the
// first time that it is asked to take or renew a lock. So all may be restarted one after the other, twice
// Guard apart; but when all servers are new, nobody gets a lock for so long.
//
// There is no line: a waiter asks again, after some milliseconds at first and a second and a half at last,
// so the order of processes is that of chance. Goroutines of one process are served in order.
//
// It connects as client.Open does, and returns when a majority answers, and the others have had a
// moment; they are connected to in the background, also later. A server may be a primary behind
// Sentinel, but not a Cluster. The library must be on each of them; with AutoLoad the client sees to
// that.
//
// Errors: ErrArgument for a bad Config, another number of servers, an address that is none, or two servers
// that are one; ErrUnreachable when no majority answers, ErrDenied when it refuses the credentials.
func Open(options []rueidis.ClientOption, cfg client.Config) (c *client.Client, err error) {
	defer named("open", &err)
	if err = countable(len(options)); err != nil {
		return nil, err
	}
	for i, o := range options {
		same := func(p rueidis.ClientOption) bool {
			return p.Sentinel.MasterSet == o.Sentinel.MasterSet && slices.Equal(p.InitAddress, o.InitAddress)
		}
		if dial.NoAddress(o) || slices.ContainsFunc(options[:i], same) {
			return nil, fmt.Errorf("%w: options[%d] has InitAddress %q: no address, or that of one before it", fcall.ErrArgument, i, o.InitAddress)
		}
	}
	s := newServers(len(options), cfg)
	if c, err = s.assemble(cfg); err != nil {
		s.close()
		return nil, err
	}
	if err = s.connect(options); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func named(verb string, err *error) {
	if *err != nil {
		*err = fmt.Errorf("holdfast: %s: %w", verb, *err)
	}
}

// New is Open over rueidis clients that stay the caller's, as client.New is client.Open. They are of
// independent servers: it sends no command, and cannot look.
//
// Errors: ErrArgument for a bad Config, another number of servers, or a Cluster.
func New(redis []rueidis.Client, cfg client.Config) (_ *client.Client, err error) {
	defer named("new", &err)
	if err = countable(len(redis)); err != nil {
		return nil, err
	}
	s := newServers(len(redis), cfg)
	for i, r := range redis {
		if r == nil || slices.Contains(redis[:i], r) {
			return nil, fmt.Errorf("%w: redis[%d] is nil or one of those before", fcall.ErrArgument, i)
		}
		if r.Mode() == rueidis.ClientModeCluster {
			return nil, fmt.Errorf("%w: redis[%d] %w", fcall.ErrArgument, i, errCluster)
		}
		s.use(s.members[i], r)
	}
	return s.assemble(cfg)
}

func (s *servers) assemble(cfg client.Config) (*client.Client, error) {
	return client.Assemble(cfg, func(closing context.Context) fcall.Backend {
		s.closing = closing
		return s
	}, s.close)
}

var errCluster = errors.New("is a Cluster, which cannot be a member of a quorum")

func countable(servers int) error {
	if servers < 3 || servers > 9 || servers%2 == 0 {
		return fmt.Errorf("%w: a quorum has 3 to 9 servers, an odd number, not %d", fcall.ErrArgument, servers)
	}
	return nil
}
