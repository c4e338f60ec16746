package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
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
	Tuned    bool // a rival once more, with the connection settings of client.Open
	Several  bool // it can work on several servers that know nothing of each other

	// Open connects one client, as one process would have it.
	Open func(p place, lease time.Duration) (locker, error)
	// Key is the Redis key of a lock.
	Key func(name string) string
}

// locker is one client of a rival, safe for concurrent use.
type locker struct {
	// Lock waits for the lock until ctx ends, which must have a deadline.
	Lock func(ctx context.Context, name string) (hold, error)
	// TryLock fails with errBusy instead of waiting.
	TryLock func(ctx context.Context, name string) (hold, error)
	Close   func()
}

// hold is a lock that was taken.
type hold struct {
	Unlock  func() error
	Context context.Context // ends when the lock is lost; nil where the library has no such thing
}

// rivals are all libraries, Holdfast first. Those on rueidis come once more with our connection
// settings: anybody can set them, and without contention they win more than any lock does.
func rivals() []rival {
	list := []rival{holdfastRival(), rueidislockRival(), redsyncRival(), redsyncRueidisRival(), bsmRival(), setnxRival()}
	for _, r := range []rival{rueidislockRival(), redsyncRueidisRival(), setnxRival()} {
		r.Name, r.Tuned = r.Name+" (tuned)", true
		r.Settings = "with the connection settings of client.Open: PipelineMultiplex -1, MaxFlushDelay 20 µs"
		list = append(list, r)
	}
	return list
}

// takes reports whether a rival takes part in a cell.
func (r rival) takes(c cell) bool {
	switch {
	case c.kind == heldKind:
		return r.Name == holdfastName
	case c.several:
		return r.Several
	}
	return c.kind == spreadKind || !r.Baseline && !r.Tuned
}

// place is where the servers are.
type place struct {
	Addrs   []string // of one server, or of several that know nothing of each other
	Several bool
	Tuned   bool
}

// patience is for connecting, while 127 other clients do the same on a machine of two cores.
const patience = time.Minute

// option is what a rueidis client needs to reach the Redis of the place.
func (p place) option() rueidis.ClientOption {
	option := rueidis.ClientOption{InitAddress: p.Addrs, Dialer: net.Dialer{Timeout: patience}}
	if p.Tuned {
		option.PipelineMultiplex, option.MaxFlushDelay = -1, 20*time.Microsecond
	}
	return option
}

// each is the place of every one of several servers.
func (p place) each() (list []place) {
	for _, addr := range p.Addrs {
		list = append(list, place{Addrs: []string{addr}})
	}
	return list
}

// goRedis opens a go-redis client. Its pool has a connection for each of the 64 goroutines that the
// largest workload of one client has (the default is ten for each core), opened when needed.
func (p place) goRedis() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: p.Addrs[0], PoolSize: 64, DialTimeout: patience})
}

// sameKey is the Key of rivals that use the name as it is.
func sameKey(name string) string { return name }
