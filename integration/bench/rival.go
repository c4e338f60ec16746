// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/integration/server"
)

// errBusy is what TryLock returns when another has the lock, whatever the library calls it.
var errBusy = errors.New("busy")

// rival is a lock library under test.
type rival struct {
	Name     string
	Settings string // for people: how it is set up here
	// the commands that it sends to Redis itself; all others ran inside scripts and functions
	Sends    []string
	Baseline bool // not a lock: the cost of the bare commands
	Several  bool // it can work on several servers that know nothing of each other
	Limits   bool // several can have a lock of it
	Shares   bool // readers and writers

	// Open connects one client, as one process would have it.
	Open func(p place, lease time.Duration) (locker, error)
}

// locker is one client of a rival, safe for concurrent use.
type locker struct {
	// Lock waits for the lock until ctx ends, which must have a deadline.
	Lock func(ctx context.Context, name string) (hold, error)
	// TryLock fails with errBusy instead of waiting.
	TryLock func(ctx context.Context, name string) (hold, error)
	// Beside is Lock for one that several may have.
	Beside func(ctx context.Context, w wish) (hold, error)
	Close  func()
}

// hold is a lock that was taken.
type hold struct {
	Unlock  func() error
	Context context.Context // ends when the lock is lost; nil where the library has no such thing
}

// rivals are all libraries, Holdfast first.
func rivals() []rival {
	return []rival{holdfastRival(), rueidislockRival(), redsyncRival(), redsyncRueidisRival(), bsmRival(), setnxRival(), floorRival(),
		redissonRival(), zsetRival(), placesRival()}
}

// takes reports whether a rival takes part in a cell.
func (r rival) takes(c cell) bool {
	switch {
	case c.group != "":
		return r.Name == holdfastName
	case c.kind == crowdKind:
		return c.limit > 0 && r.Limits || r.Shares
	case r.Limits && r.Name != holdfastName:
		return false
	case c.where == server.KindSeveral:
		return r.Several || r.Baseline
	}
	return !r.Baseline || c.kind == spreadKind || c.kind == openKind
}

// place is where the servers are.
type place struct {
	Addrs []string // of one server, of a Cluster, or of several that know nothing of each other
	Kind  server.Kind
}

// patience is for connecting, while 127 other clients do the same on a machine of two cores.
const patience = time.Minute

// option is what a rueidis client needs to reach the Redis of the place. Its settings are those of
// client.Open, for all: without contention they win more than any lock does. But AlwaysPipelining costs those
// something who do not need it.
func (p place) option() rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: p.Addrs, Dialer: net.Dialer{Timeout: patience},
		PipelineMultiplex: -1, MaxFlushDelay: 20 * time.Microsecond, ReadBufferEachConn: 64 << 10, WriteBufferEachConn: 64 << 10}
}

// rueidis opens a client with these settings.
func (p place) rueidis() (c rueidis.Client, end func(), err error) {
	if c, err = rueidis.NewClient(p.option()); err == nil {
		end = c.Close
	}
	return c, end, err
}

// openEach opens a client for each of several servers, or one.
func openEach[T any](p place, open func(place) (T, func(), error)) (list []T, end func(), err error) {
	var ends []func()
	end = func() {
		for _, end := range ends {
			end()
		}
	}
	for _, one := range p.each() {
		c, close, err := open(one)
		if err != nil {
			end()
			return nil, nil, err
		}
		list, ends = append(list, c), append(ends, close)
	}
	return list, end, nil
}

// each is the place of every one of several servers, or the place itself.
func (p place) each() (list []place) {
	if p.Kind != server.KindSeveral {
		return []place{p}
	}
	for _, addr := range p.Addrs {
		list = append(list, place{Addrs: []string{addr}})
	}
	return list
}

// goRedis opens a go-redis client. Its pool has a connection for each of the 64 goroutines that the
// largest workload of one client has (the default is ten for each core), opened when needed.
func (p place) goRedis() redis.UniversalClient {
	return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: p.Addrs, PoolSize: 64, DialTimeout: patience})
}
