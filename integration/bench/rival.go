package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// errBusy is what TryLock returns when another has the lock, whatever the library calls it.
var errBusy = errors.New("busy")

// rival is a lock library under test.
type rival struct {
	Name     string
	Settings string // for people: how it is set up here
	// the commands that it sends to Redis itself; all others ran inside scripts and functions
	Sends    []string
	Renews   bool // it keeps a lock alive by itself
	Baseline bool // not a lock: the cost of the bare commands
	// a rival once more, with our connection settings, for where they matter most: without
	// contention
	Tuned  bool
	Bare   bool // the baseline as functions, for the server's capacity only
	Etcd   bool // it works on etcd, not on Redis
	Quorum bool // on several independent servers
	Level  bool // it takes part in the workload levels, and in no other

	// Open connects one client, as one process would have it.
	Open func(ctx context.Context, p place, u use) (locker, error)
	// Key is the Redis key of a lock; nil without Redis.
	Key func(name string) string
	// Ends says when the lease of a held lock ends, if nobody renews it any more; nil: when the key
	// expires.
	Ends func(ctx context.Context, p place, name string) (time.Time, error)
}

// use is what a client is opened for.
type use struct {
	Lease time.Duration // how long a lock survives its holder
}

// locker is one client of a rival, safe for concurrent use.
type locker interface {
	// Lock waits for the lock until ctx ends, which must have a deadline.
	Lock(ctx context.Context, name string) (hold, error)
	// TryLock fails with errBusy instead of waiting.
	TryLock(ctx context.Context, name string) (hold, error)
	Close()
}

// hold is a lock that was taken.
type hold struct {
	Unlock  func() error
	Context context.Context // ends when the lock is lost; nil where the library has no such thing
}

// rivals are all libraries, Holdfast first.
func rivals() []rival {
	return append([]rival{holdfastRival(), rueidislockRival(), redsyncRival(), redsyncRueidisRival(), bsmRival(), etcdRival(),
		rueidislockTunedRival(), redsyncRueidisTunedRival(), setnxRival(), setnxTunedRival(), bareRival()}, levelRivals()...)
}

// asTuned marks a rival that was given the tuned settings.
func (r rival) asTuned() rival {
	r.Name, r.Settings, r.Tuned = r.Name+" (tuned)", tunedSettings, true
	return r
}

// rivalNamed finds a rival by its name.
func rivalNamed(name string) (rival, error) {
	all := rivals()
	i := slices.IndexFunc(all, func(r rival) bool { return r.Name == name })
	if i < 0 {
		return rival{}, errors.New("no rival is called " + name)
	}
	return all[i], nil
}

// ends asks the server when the lease of a held lock ends.
func (r rival) ends(ctx context.Context, p place, name string) (time.Time, error) {
	if r.Ends != nil {
		return r.Ends(ctx, p, name)
	}
	return p.keyEnds(ctx, r.Key(name))
}

// sameKey is the Key of rivals that use the name as it is.
func sameKey(name string) string { return name }

// openMany opens n clients of a rival; on an error none is left open.
func openMany(ctx context.Context, r rival, p place, u use, n int) (opened []locker, err error) {
	for range n {
		l, err := r.Open(ctx, p, u)
		if err != nil {
			closeAll(opened)
			return nil, err
		}
		opened = append(opened, l)
	}
	return opened, nil
}

func closeAll(opened []locker) {
	for _, l := range opened {
		l.Close()
	}
}
