// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis"
)

// job is what a process of clients is started for.
type job struct {
	Name     string
	Seed     uint64
	Addrs    []string
	Master   string            // of Sentinel
	Proxies  map[string]string // by the address of the server behind it
	Locks    []string
	Quorum   bool // Addrs are servers of a quorum
	Workers  int
	Replicas int // all of a primary's; 0: there is no level Replicas
	terms
	AutoLoad bool    // Go clients load the library where it is missing
	Alone    bool    // nobody is at the default level
	Breaks   bool    // workers break locks
	Long     float64 // the part of holds of Go clients that last for some seconds
	Defect   string  // put in for a test
}

// The defects of client processes.
const (
	defectLeak    = "leak"    // a goroutine is left
	defectHoard   = "hoard"   // each turn leaves some
	defectUnheard = "unheard" // those at the level Replicas do not ask how many have it
)

// prefix is what the Go client puts before a lock's name.
const prefix = "lock:"

// dial connects to a server through its proxy, if it has one.
func (j *job) dial(ctx context.Context, to string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	if through, ok := j.Proxies[to]; ok {
		to = through
	}
	return d.DialContext(ctx, "tcp", to)
}

// options are option for each server of a quorum.
func (j *job) options() []rueidis.ClientOption {
	var list []rueidis.ClientOption
	for _, addr := range j.Addrs {
		list = append(list, j.option(addr))
	}
	return list
}

// option is how a process reaches the servers: through its proxies.
func (j *job) option(addrs ...string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: addrs,
		Sentinel:    rueidis.SentinelOption{MasterSet: j.Master},
		Dialer:      net.Dialer{Timeout: time.Second},
		DialCtxFn:   j.dial,
		// A server that is silent is noticed, and left, within the storm.
		ConnWriteTimeout: 2 * time.Second,
	}
}

// replicated reports whether a worker is at the level Replicas.
func (j *job) replicated(worker int) bool {
	return j.Replicas > 0 && j.Guard == 0 && (worker%2 == 1 || j.Alone)
}
