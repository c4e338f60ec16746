// SPDX-License-Identifier: Apache-2.0

// Package locks looks at the locks of a deployment for an operator: which there are, who has them,
// and who waits.
package locks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/cluster"
)

// View is a deployment as an operator sees it: one, or the servers of a quorum.
type View struct {
	Client *client.Client
	prefix string
	need   int // so many servers must answer

	mu    sync.Mutex
	redis []rueidis.Client // one of each deployment
}

// Open looks through a client of one deployment, which stays the caller's. With an empty prefix a
// lock's name is the whole key.
func Open(redis rueidis.Client, prefix string) (*View, error) {
	c, err := client.New(redis, config(prefix))
	if err != nil {
		return nil, err
	}
	return &View{Client: c, prefix: prefix, redis: []rueidis.Client{redis}, need: 1}, nil
}

// OpenQuorum looks at the servers of a quorum. It connects to them by the options, and beside that
// uses the clients of those that answer.
func OpenQuorum(options []rueidis.ClientOption, answering []rueidis.Client, prefix string) (*View, error) {
	c, err := quorum.Open(options, config(prefix))
	if err != nil {
		return nil, err
	}
	return &View{Client: c, prefix: prefix, redis: answering, need: len(options)/2 + 1}, nil
}

func config(prefix string) client.Config {
	return client.Config{Prefix: prefix, NoPrefix: prefix == "", Logger: slog.New(slog.DiscardHandler)}
}

// Add looks at one more server of a quorum, which has begun to answer. It stays the caller's.
func (v *View) Add(redis rueidis.Client) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.redis = append(v.redis, redis)
}

func (v *View) servers() []rueidis.Client {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.redis
}

// Close ends what Open began. The clients stay open.
func (v *View) Close() { v.Client.Close() }

// Key is the key of a lock.
func (v *View) Key(name string) string { return v.prefix + name }

// Slot is the hash slot of a lock in a Cluster; ok is false elsewhere.
func (v *View) Slot(name string) (slot uint16, ok bool) {
	return cluster.Slot(v.Key(name)), v.servers()[0].Mode() == rueidis.ClientModeCluster
}

// Now is the time by the clock of a server, or by this machine's if none says.
func (v *View) Now(ctx context.Context) time.Time {
	for _, redis := range v.servers() {
		now, err := redis.Do(ctx, redis.B().Time().Build()).AsIntSlice()
		if err == nil && len(now) == 2 {
			return time.Unix(now[0], now[1]*int64(time.Microsecond))
		}
	}
	return time.Now()
}

// Nodes are clients of all servers that it is connected to.
func (v *View) Nodes() (all []rueidis.Client) {
	for _, redis := range v.servers() {
		all = slices.AppendSeq(all, maps.Values(redis.Nodes()))
	}
	return all
}

// primary is a server that has keys.
type primary struct {
	addr  string
	node  rueidis.Client // nil: there is no connection to it
	alone bool           // nobody says so but the server itself
}

// still returns an error where a server that is no Cluster's is a replica now. It ends the connection: the next
// one may lead to its successor, by a name or an address that moved.
func (p primary) still(ctx context.Context) error {
	if !p.alone {
		return nil
	}
	said, err := Hello(ctx, p.node)
	if err != nil || said["role"] == "master" {
		return err
	}
	_ = p.node.Do(ctx, p.node.B().Arbitrary("QUIT").Build()).Error() // the answer may not come any more
	return errors.New("this is a replica now, and what it has may be old")
}

// Hello asks what a server is: its mode is "standalone", "cluster" or "sentinel", its role "master" or
// "replica". HELLO needs no permission.
func Hello(ctx context.Context, redis rueidis.Client) (map[string]string, error) {
	reply, err := redis.Do(ctx, redis.B().Arbitrary("HELLO").Build()).AsMap()
	said := map[string]string{}
	for name, value := range reply {
		said[name], _ = value.ToString() // numbers and lists stay out
	}
	return said, err
}

// primaries are the servers that share the keys of the deployment, or of all servers of a quorum.
func (v *View) primaries(ctx context.Context) ([]primary, error) {
	var all []primary
	for _, redis := range v.servers() {
		if redis.Mode() != rueidis.ClientModeCluster {
			for _, addr := range slices.Sorted(maps.Keys(redis.Nodes())) {
				all = append(all, primary{addr, redis, redis.Mode() == rueidis.ClientModeStandalone})
				break // a client of one server, or of the primary that sentinels name
			}
			continue
		}
		nodes, err := cluster.Topology(ctx, redis)
		if err != nil {
			return nil, fmt.Errorf("which nodes there are: %w", err)
		}
		connected := redis.Nodes()
		for _, n := range nodes {
			if n.Role == cluster.Primary && len(n.Slots) > 0 {
				all = append(all, primary{addr: n.Addr, node: connected[n.Addr]})
			}
		}
	}
	return all, nil
}
