// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// SentinelMaster is the name by which sentinels of a KindSentinel deployment
// know its primary.
const SentinelMaster = "holdfast"

// shapeWithin bounds the start of a whole deployment under a test.
const shapeWithin = 2 * time.Minute

// Deployment is a running server or group of servers.
type Deployment struct {
	Kind           Kind
	Flavour        Flavour
	SentinelMaster string // set for KindSentinel only

	nodes     []*Node // primaries, then replicas
	sentinels []*Node
	password  string
	external  *rueidis.ClientOption // of the server at HOLDFAST_REDIS
	closing   sync.Once
	closed    error
}

// Single starts one server, or gives the one at HOLDFAST_REDIS, for the time
// of the test. See Owned.
func Single(tb testing.TB, opts ...Option) *Deployment {
	tb.Helper()
	return forTest(tb, Spec{Kind: KindSingle}, opts)
}

// Replicated starts a primary with replicas, for the time of the test.
func Replicated(tb testing.TB, replicas int, opts ...Option) *Deployment {
	tb.Helper()
	return forTest(tb, Spec{Kind: KindReplicated, Replicas: replicas}, opts)
}

// Sentinel starts a primary, two replicas and three sentinels, for the time of
// the test. The sentinels fail over about a second after they lose the primary.
func Sentinel(tb testing.TB, opts ...Option) *Deployment {
	tb.Helper()
	return forTest(tb, Spec{Kind: KindSentinel}, opts)
}

// Cluster starts three primaries with one replica each, for the time of the
// test. A replica takes over about three seconds after its primary is lost.
func Cluster(tb testing.TB, opts ...Option) *Deployment {
	tb.Helper()
	return forTest(tb, Spec{Kind: KindCluster}, opts)
}

// Several starts servers that know nothing of each other, for the time of the
// test. All are primaries; see ClientOptions.
func Several(tb testing.TB, servers int, opts ...Option) *Deployment {
	tb.Helper()
	return forTest(tb, Spec{Kind: KindSeveral, Servers: servers}, opts)
}

func forTest(tb testing.TB, spec Spec, opts []Option) *Deployment {
	tb.Helper()
	for _, o := range opts {
		o(&spec)
	}
	ctx, cancel := context.WithTimeout(context.Background(), shapeWithin)
	defer cancel()
	d, err := Start(ctx, spec)
	if err != nil {
		tb.Fatal(err)
	}
	for _, n := range d.all() {
		n.tb = tb
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// Start starts what the Spec says and blocks until all of it works: replicas
// follow, sentinels agree, the Cluster serves all slots. On an error nothing
// is left running. The caller must Close the deployment.
func Start(ctx context.Context, spec Spec) (*Deployment, error) {
	if err := choose(&spec); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if spec.Flavour.Runtime == External {
		return startExternal(ctx, spec)
	}
	const tries = 5 // other processes can take the ports that were found free
	var err error
	for range tries {
		var d *Deployment
		if d, err = startOnce(ctx, spec); err == nil {
			return d, nil
		}
		err = errors.Join(err, d.Close())
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, fmt.Errorf("server: start %s on %s: %w", spec.Kind, spec.Flavour, err)
}

// startOnce returns the deployment with an error too, to be closed.
func startOnce(ctx context.Context, spec Spec) (*Deployment, error) {
	d := &Deployment{Kind: spec.Kind, Flavour: spec.Flavour, password: spec.setting("requirepass")}
	if err := d.plan(&spec); err != nil {
		return d, err
	}
	if err := d.prepare(&spec); err != nil {
		return d, err
	}
	// A replica that finds no primary tries again a second later only.
	for _, group := range [][]*Node{d.nodes[:1], d.nodes[1:]} {
		if err := Together(group, func(n *Node) error { return n.launch(ctx) }); err != nil {
			return d, err
		}
	}
	switch spec.Kind {
	case KindCluster:
		return d, d.joinCluster(ctx)
	case KindSentinel:
		if err := d.linked(ctx); err != nil {
			return d, err
		}
		return d, d.watch(ctx)
	}
	return d, d.linked(ctx)
}

// plan makes the nodes, with their ports and settings; nothing is started.
func (d *Deployment) plan(spec *Spec) error {
	primaries, replicas := 1, 0
	switch spec.Kind {
	case KindReplicated:
		replicas = spec.Replicas
	case KindSentinel:
		replicas = 2
	case KindCluster:
		primaries, replicas = 3, 3
	case KindSeveral:
		primaries = spec.Servers
	}
	for i := range primaries + replicas {
		n, err := d.newNode(RolePrimary)
		if err != nil {
			return err
		}
		d.nodes = append(d.nodes, n)
		primary := ""
		if i >= primaries {
			n.Role = RoleReplica
			if spec.Kind != KindCluster {
				primary = d.nodes[0].Addr
			}
		}
		if spec.Kind == KindCluster {
			if n.busPort, err = freePort(); err != nil {
				return err
			}
		}
		n.password = d.password
		n.conf = n.placeConf() + spec.dataConf(primary)
	}
	if spec.Kind == KindSentinel {
		return d.planSentinels()
	}
	return nil
}

// Nodes returns the servers that hold data: primaries first, as started, then
// replicas; in Cluster replica i+3 was started for primary i.
func (d *Deployment) Nodes() []*Node { return d.nodes }

// Sentinels returns the sentinels; there are none outside KindSentinel.
func (d *Deployment) Sentinels() []*Node { return d.sentinels }

// Addrs returns the addresses for a client to start from: of the sentinels if
// there are any, of all data nodes in Cluster, and otherwise of the
// first primary.
func (d *Deployment) Addrs() []string {
	from := d.nodes[:1]
	switch d.Kind {
	case KindSentinel:
		from = d.sentinels
	case KindCluster:
		from = d.nodes
	}
	addrs := make([]string, len(from))
	for i, n := range from {
		addrs[i] = n.Addr
	}
	return addrs
}

// ClientOption returns what a rueidis client needs to reach the deployment and
// nothing else: InitAddress, for KindSentinel Sentinel.MasterSet, the
// password of WithConfig("requirepass"), and what a HOLDFAST_REDIS URL says.
func (d *Deployment) ClientOption() rueidis.ClientOption {
	if d.external != nil {
		return *d.external
	}
	return rueidis.ClientOption{
		InitAddress: d.Addrs(),
		Password:    d.password,
		Sentinel:    rueidis.SentinelOption{MasterSet: d.SentinelMaster},
	}
}

// ClientOptions is ClientOption for each server of KindSeveral.
func (d *Deployment) ClientOptions() []rueidis.ClientOption {
	options := make([]rueidis.ClientOption, len(d.nodes))
	for i, n := range d.nodes {
		options[i] = rueidis.ClientOption{InitAddress: []string{n.Addr}, Password: d.password}
	}
	return options
}

// Close kills all nodes and deletes their files. It is safe to repeat; the
// server at HOLDFAST_REDIS is left as it is.
func (d *Deployment) Close() error {
	d.closing.Do(func() {
		d.closed = Together(d.all(), func(n *Node) error {
			if n.proc == nil {
				return nil
			}
			return cmp.Or(end(n.proc), n.proc.Delete())
		})
	})
	return d.closed
}

func (d *Deployment) all() []*Node {
	return append(d.nodes[:len(d.nodes):len(d.nodes)], d.sentinels...)
}

// Together calls f for all nodes at once, blocks until all calls returned, and
// joins their errors.
func Together(nodes []*Node, f func(*Node) error) error {
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { errs[i] = f(n) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
