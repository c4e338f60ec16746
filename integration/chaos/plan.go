package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/server"
)

// plan chooses where a fault strikes. The func that it returns does it.
func (v *servers) plan(k kind, random *rand.Rand,
	locks []string) (do func(rest func(time.Duration)) error, target string) {
	if v.shape.quorum() {
		return v.planVoters(k, random)
	}
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
