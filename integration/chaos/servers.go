package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/server"
)

// servers are the deployment of a round.
type servers struct {
	shape      shape
	deployment *server.Deployment
	nodes      []*server.Node
	source     string       // of the library
	failovers  atomic.Int64 // counted when one is begun, and when it is over
}

func startServers(ctx context.Context, s shape, source string) (*servers, error) {
	d, err := server.Start(ctx, s.spec)
	if err != nil {
		return nil, err
	}
	v := &servers{shape: s, deployment: d, nodes: d.Nodes(), source: source}
	if err := errors.Join(v.load(), v.whole()); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return v, nil
}

// roles asks all servers at once.
func (v *servers) roles() map[string]string {
	var mu sync.Mutex
	var all sync.WaitGroup
	roles := map[string]string{}
	for _, n := range v.nodes {
		all.Go(func() {
			r := replicationOf(n.Addr)
			mu.Lock()
			defer mu.Unlock()
			roles[n.Addr] = r.role
		})
	}
	all.Wait()
	return roles
}

// primaries are the addresses of those that take themselves for one.
func (v *servers) primaries() (list []string) {
	roles := v.roles()
	for _, n := range v.nodes {
		if roles[n.Addr] == "master" {
			list = append(list, n.Addr)
		}
	}
	return list
}

// load puts the library on each primary that lacks it, and tries for a while where that fails.
func (v *servers) load() error {
	var err error
	until(10*time.Second, func() bool {
		err = nil
		for _, addr := range v.primaries() {
			if tell(addr, "FCALL_RO", "holdfast_version", "0") != nil {
				err = errors.Join(err, tell(addr, "FUNCTION", "LOAD", "REPLACE", v.source))
			}
		}
		return err == nil
	})
	return err
}

// whole blocks until the deployment is as it was at first, but for who is the primary: all run and
// follow, and all agree. The library is loaded where a server lost it.
func (v *servers) whole() error {
	var why string
	if !until(time.Minute, func() bool { why = v.lacks(); return why == "" }) {
		return fmt.Errorf("the deployment is not whole after a minute: %s", why)
	}
	return v.load()
}

// lacks says what is missing.
func (v *servers) lacks() string {
	masters, count := 0, 0
	for _, n := range v.nodes {
		r := replicationOf(n.Addr)
		switch {
		case r.role == "":
			return n.Addr + " does not answer"
		case r.role == "master" && r.replicas != strconv.Itoa(v.shape.replicas):
			return n.Addr + " has " + r.replicas + " replicas"
		case r.role == "slave" && r.link != "up":
			return n.Addr + " does not follow"
		case r.role == "master":
			masters++
		}
		count++
	}
	switch v.deployment.Kind {
	case server.KindCluster:
		if masters != count/2 {
			return fmt.Sprintf("%d are primaries", masters)
		}
		return v.disagree()
	default:
		if masters != 1 {
			return fmt.Sprintf("%d are primaries", masters)
		}
	}
	for _, s := range v.deployment.Sentinels() {
		m, err := probe(s.Addr, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", server.SentinelMaster)
		if err != nil {
			return "a sentinel does not answer"
		}
		at, err := m.AsStrSlice()
		if err != nil || len(at) != 2 || !slices.Contains(v.primaries(), at[0]+":"+at[1]) {
			return "a sentinel knows another primary"
		}
	}
	return ""
}

// disagree says which node of a Cluster sees it otherwise than the first.
func (v *servers) disagree() string {
	first := ""
	for _, n := range v.nodes {
		m, err := probe(n.Addr, "CLUSTER", "INFO")
		if err != nil {
			return n.Addr + " does not answer"
		}
		if text, _ := m.ToString(); !strings.Contains(text, "cluster_state:ok") {
			return n.Addr + " finds the Cluster down"
		}
		view, err := v.owners(n.Addr)
		if err != nil {
			return n.Addr + ": " + err.Error()
		}
		if first == "" {
			first = view
		}
		if view != first {
			return n.Addr + " sees other owners of slots than " + v.nodes[0].Addr
		}
	}
	return ""
}

// owners is which primary has which slots, as one node sees it.
func (v *servers) owners(addr string) (string, error) {
	m, err := probe(addr, "CLUSTER", "NODES")
	if err != nil {
		return "", err
	}
	text, err := m.ToString()
	if err != nil {
		return "", err
	}
	var rows []string
	for row := range strings.Lines(text) {
		// id address flags primary ping pong epoch link slots...
		f := strings.Fields(row)
		if len(f) >= 8 && strings.Contains(f[2], "master") && !strings.Contains(f[2], "fail") {
			rows = append(rows, f[0]+" "+strings.Join(f[8:], " "))
		}
		if strings.Contains(row, "fail") {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return strings.Join(rows, "\n"), nil
}

// shard is a primary with its replicas, as they are now.
type shard struct {
	primary  *server.Node
	replicas []*server.Node
}

// shards are those of the deployment, in the order of its nodes. A Cluster's replica stays with
// the primary that it was started for.
func (v *servers) shards() (list []shard) {
	groups := [][]*server.Node{v.nodes}
	if v.deployment.Kind == server.KindCluster {
		half := len(v.nodes) / 2
		groups = nil
		for i := range half {
			groups = append(groups, []*server.Node{v.nodes[i], v.nodes[i+half]})
		}
	}
	roles := v.roles()
	for _, g := range groups {
		var s shard
		for _, n := range g {
			if roles[n.Addr] == "master" {
				s.primary = n
			} else {
				s.replicas = append(s.replicas, n)
			}
		}
		if s.primary != nil {
			list = append(list, s)
		}
	}
	return list
}

// plan chooses where a fault strikes. The func that it returns does it.
func (v *servers) plan(k kind, random *rand.Rand,
	locks []string) (do func(rest func(time.Duration)) error, target string) {
	pick, down := random.Uint64(), time.Duration(random.Float64()*float64(700*time.Millisecond))
	lock := locks[random.IntN(len(locks))]
	list := v.shards()
	if len(list) == 0 {
		return func(func(time.Duration)) error { return errors.New("no primary answers") }, ""
	}
	s := list[pick%uint64(len(list))]
	target = s.primary.Addr
	var replica *server.Node
	if len(s.replicas) > 0 {
		replica = s.replicas[(pick>>8)%uint64(len(s.replicas))]
	}
	ctx := context.Background()
	switch k {
	case serverPause:
		do = func(rest func(time.Duration)) error {
			err := s.primary.Pause()
			rest(min(down, 500*time.Millisecond))
			return errors.Join(err, s.primary.Resume())
		}
	case serverRestart, serverForget:
		do = func(rest func(time.Duration)) error {
			err := s.primary.Kill()
			rest(down)
			return errors.Join(err, s.primary.Restart(), v.load())
		}
	case replicaRestart:
		target = replica.Addr
		do = func(rest func(time.Duration)) error {
			err := replica.Kill()
			rest(down)
			return errors.Join(err, replica.Restart())
		}
	case replicaKill:
		do = func(func(time.Duration)) error {
			return tell(s.primary.Addr, "CLIENT", "KILL", "TYPE",
				"replica")
		}
	case failoverOrder:
		do = func(func(time.Duration)) error { return replica.Failover(ctx) }
	case failoverForce:
		do = func(func(time.Duration)) error { return replica.Failover(ctx, "FORCE") }
	case failoverTake:
		do = func(func(time.Duration)) error { return replica.Failover(ctx, "TAKEOVER") }
	case failoverAsk:
		do = func(func(time.Duration)) error {
			err := tell(v.deployment.Sentinels()[0].Addr, "SENTINEL", "FAILOVER",
				server.SentinelMaster)
			if err != nil {
				return err
			}
			return v.succeeded(s)
		}
	case failoverKill:
		do = func(func(time.Duration)) error {
			err := errors.Join(s.primary.Kill(), v.succeeded(s))
			return errors.Join(err, s.primary.Restart())
		}
	case failoverStale:
		do = func(rest func(time.Duration)) error {
			return v.killAhead(s, 300*time.Millisecond+down, rest)
		}
	case failoverPause:
		do = func(func(time.Duration)) error {
			err := errors.Join(s.primary.Pause(), v.succeeded(s))
			return errors.Join(err, s.primary.Resume())
		}
	case slotMove:
		slot := cluster.Slot(prefix + lock)
		from, to, err := v.between(slot, list, pick>>16)
		if err != nil {
			return func(func(time.Duration)) error { return err }, lock
		}
		target = fmt.Sprintf("slot %d of %s from %s to %s", slot, lock, from.Addr, to.Addr)
		do = func(func(time.Duration)) error { return v.move(slot, from, to) }
	}
	return do, target
}

// killAhead kills a primary whose replicas have not heard of the last moment: what it granted then
// is lost. A replica that is paused would read what is in its socket, so the link is cut.
func (v *servers) killAhead(s shard, ahead time.Duration, rest func(time.Duration)) error {
	var errs []error
	for _, r := range s.replicas {
		errs = append(errs, r.Pause())
	}
	errs = append(errs, tell(s.primary.Addr, "CLIENT", "KILL", "TYPE", "replica"))
	rest(ahead)
	errs = append(errs, s.primary.Kill())
	for _, r := range s.replicas {
		errs = append(errs, r.Resume())
	}
	errs = append(errs, v.succeeded(s), s.primary.Restart())
	return errors.Join(errs...)
}

// succeeded blocks until a replica of the shard is the primary.
func (v *servers) succeeded(s shard) error {
	done := until(40*time.Second, func() bool {
		return slices.ContainsFunc(s.replicas,
			func(n *server.Node) bool { return replicationOf(n.Addr).role == "master" })
	})
	if !done {
		return errors.New("no replica has become the primary of " + s.primary.Addr)
	}
	return nil
}

// between finds who has a slot, and chooses another primary for it.
func (v *servers) between(slot uint16, list []shard, pick uint64) (from, to *server.Node, _ error) {
	var others []*server.Node
	for _, s := range list {
		owned, err := v.owns(s.primary, int(slot))
		switch {
		case err != nil:
			return nil, nil, err
		case owned:
			from = s.primary
		default:
			others = append(others, s.primary)
		}
	}
	if from == nil || len(others) == 0 {
		return nil, nil, fmt.Errorf("nobody has slot %d, or nobody else can take it", slot)
	}
	return from, others[pick%uint64(len(others))], nil
}

// move moves a slot to a primary, as redis-cli does, with its keys one by one. Connections can be
// killed meanwhile, so it goes on until all of it is done: a slot that is left half on its way
// would lose keys in the next failover.
func (v *servers) move(slot uint16, from, to *server.Node) error {
	number := strconv.Itoa(int(slot))
	var err error
	until(20*time.Second, func() bool {
		err = v.tryMove(number, from, to)
		return err == nil
	})
	return err
}

func (v *servers) tryMove(slot string, from, to *server.Node) error {
	source, err1 := id(from)
	target, err2 := id(to)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	// Once the target has the slot, it cannot import it any more.
	number, err := strconv.Atoi(slot)
	if err != nil {
		return err
	}
	done, err := v.owns(to, number)
	if err != nil {
		return err
	}
	if !done {
		if err := tell(to.Addr, "CLUSTER", "SETSLOT", slot, "IMPORTING", source); err != nil {
			return err
		}
		if err := tell(from.Addr, "CLUSTER", "SETSLOT", slot, "MIGRATING", target); err != nil {
			return err
		}
		if err := moveKeys(slot, from, to); err != nil {
			return err
		}
		if err := tell(to.Addr, "CLUSTER", "SETSLOT", slot, "NODE", target); err != nil {
			return err
		}
	}
	return tell(from.Addr, "CLUSTER", "SETSLOT", slot, "NODE", target)
}

// moveKeys moves what is in a slot. A key can be at the target already, if the answer to a MIGRATE
// was lost; nobody has changed it there, because the source still had it.
func moveKeys(slot string, from, to *server.Node) error {
	host, port, _ := strings.Cut(to.Addr, ":")
	for {
		m, err := probe(from.Addr, "CLUSTER", "GETKEYSINSLOT", slot, "10")
		if err != nil {
			return err
		}
		keys, err := m.AsStrSlice()
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, key := range keys {
			if err := tell(from.Addr, "MIGRATE", host, port, key, "0", "1000",
				"REPLACE"); err != nil {
				return err
			}
		}
	}
}

func id(n *server.Node) (string, error) {
	m, err := probe(n.Addr, "CLUSTER", "MYID")
	if err != nil {
		return "", err
	}
	return m.ToString()
}

// owns reports whether a node has a slot, by its own account.
func (v *servers) owns(n *server.Node, slot int) (bool, error) {
	m, err := probe(n.Addr, "CLUSTER", "NODES")
	if err != nil {
		return false, err
	}
	text, err := m.ToString()
	if err != nil {
		return false, err
	}
	for row := range strings.Lines(text) {
		f := strings.Fields(row)
		if len(f) < 8 || !strings.Contains(f[2], "myself") {
			continue
		}
		for _, r := range f[8:] {
			first, last, found := strings.Cut(r, "-")
			if !found {
				last = first
			}
			low, err1 := strconv.Atoi(first)
			high, err2 := strconv.Atoi(last)
			if err1 == nil && err2 == nil && low <= slot && slot <= high {
				return true, nil
			}
		}
	}
	return false, nil
}
