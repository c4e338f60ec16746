// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// pair chooses a primary and one of its replicas. to is nil if none can take its place.
func (in *injector) pair() (old, to *redis.Node) {
	old = in.primary()
	heirs := in.run.which(func(n *redis.Node) bool { return n.Primary() == old })
	if len(heirs) == 0 {
		return old, nil
	}
	if to = heirs[in.rng.IntN(len(heirs))]; in.run.kind == onSingle {
		return old, nil
	}
	return old, to
}

func (in *injector) graceful() {
	old, to := in.pair()
	if to == nil {
		return
	}
	defer in.server("graceful failover", old.Addr()+" to "+to.Addr())()
	in.retold(to, nothingLost)
	names := in.run.of(old)
	in.run.world.Failover(to, redis.Failover{})
	in.run.seen.retell(to, names, nothingLost)
	time.Sleep(10*time.Millisecond + 31*time.Nanosecond) // in no Cluster two of them take less, also when waits are over
	in.wait(10*time.Millisecond, time.Second)
}

func (in *injector) forced() {
	old, to := in.pair()
	if to == nil {
		return
	}
	way := in.rng.IntN(4)
	defer in.server("forced failover", fmt.Sprintf("%s to %s, way %d", old.Addr(), to.Addr(), way))()
	switch way {
	case 0: // what was written lately is lost
		to.StopReplication()
		in.wait(time.Millisecond, 3*time.Second)
	case 1: // the old primary hangs
		old.Pause()
		in.wait(10*time.Millisecond, 3*time.Second)
	case 2: // it has crashed
		old.Kill()
		in.wait(10*time.Millisecond, 3*time.Second)
	}
	o, names := in.run.seen, in.run.of(old)
	o.strand(old, to)
	in.retold(to, oracle.Unreplicated)
	o.locked(func() {
		o.stale[old] = true
		for _, name := range names {
			for _, t := range o.locks[name].terms {
				if t.owner != "" && way != 2 { // it may be renewed there and nowhere else
					o.locks[name].lose(t.owner, oracle.Deposed)
				}
			}
		}
	})
	in.run.world.Failover(to, redis.Failover{Force: true, Isolated: way == 2 || in.rng.IntN(2) == 0})
	o.retell(to, names, oracle.Unreplicated)
	if _, missing := to.Do("FCALL", "holdfast_version", "0").(redis.Error); missing { // the library too, if it was just loaded
		in.load(to)
	}
	to.StartReplication()
	in.wait(10*time.Millisecond, 5*time.Second)
	switch way {
	case 1:
		old.Continue()
		in.wait(10*time.Millisecond, time.Second)
	case 2:
		old.Restart(redis.Everything)
	}
	in.depose(old, to)
}

// strand notes which locks came to a server so late that its heir does not have their keys.
func (o *observer) strand(old, heir *redis.Node) {
	has := heir.Offset()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.locks {
		l.stranded = l.landed.node == old && has < l.landed.offset
	}
}

// depose makes a primary that was deposed by force a replica.
func (in *injector) depose(old, to *redis.Node) {
	for i := 0; old.Primary() == nil; i++ {
		old.Isolate(false)
		time.Sleep(10*time.Millisecond + 31*time.Nanosecond)
		if i == 1000 {
			panic(fmt.Sprintf("seed %d: %s does not follow %s", in.run.seed, old.Addr(), to.Addr()))
		}
	}
	in.run.seen.locked(func() { delete(in.run.seen.stale, old) })
}
