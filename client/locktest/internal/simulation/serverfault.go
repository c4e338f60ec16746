// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

var serverFaults = []fault{
	{"graceful failover", 10, (*injector).graceful},
	{"forced failover", 8, (*injector).forced},
	{"restart", 8, (*injector).restart},
	{"pause", 8, (*injector).pause},
	{"refusal", 8, (*injector).refusal},
	{"migration", 8, (*injector).migrate},
	{"flush functions", 4, (*injector).flush},
	{"del", 5, (*injector).del},
	{"clock", 4, (*injector).clock},
	{"break at a grant", 3, (*injector).breakGrants},
	{"loss and refusal", 2, (*injector).loseAndRefuse},
	{"restarts", 0, (*injector).restarts},
	{"pauses", 0, (*injector).pauses},
	{"step", 0, (*injector).step},
	{"del at one", 0, (*injector).delAtOne},
}

// which returns the servers of which something is true.
func (r *run) which(is func(*redis.Node) bool) []*redis.Node {
	return slices.DeleteFunc(slices.Clone(r.nodes), func(n *redis.Node) bool { return !is(n) })
}

// primaries returns the nodes that are primaries now.
func (in *injector) primaries() []*redis.Node {
	return in.run.which(func(n *redis.Node) bool { return n.Primary() == nil })
}

func (in *injector) primary() *redis.Node {
	all := in.primaries()
	return all[in.rng.IntN(len(all))]
}

// serving returns the primaries of a lock.
func (in *injector) serving(name string) []*redis.Node {
	return slices.DeleteFunc(in.primaries(), func(n *redis.Node) bool { return !in.run.serves(n, name) })
}

func (r *run) serves(n *redis.Node, name string) bool {
	return r.kind != onCluster || r.world.Owner(prefix+name) == n
}

// of returns the locks of a primary.
func (r *run) of(n *redis.Node) []string {
	return slices.DeleteFunc(slices.Clone(r.names), func(name string) bool { return !r.serves(n, name) })
}

// server notes a fault of a server, which all processes suffer from.
func (in *injector) server(kind, text string) (end func()) {
	return in.harm(kind, redis.Path{}, text, false)
}

func (in *injector) retold(n *redis.Node, why oracle.Cause) {
	o := in.run.seen
	o.locked(func() { o.retold[n], o.forgot = why, true })
}

func (in *injector) restart() {
	n := in.primary()
	disk := redis.Disk([]int{0, 0, 1, 2}[in.rng.IntN(4)])
	defer in.server("restart", fmt.Sprintf("%s, disk %d", n.Addr(), disk))()
	in.reboot(n, disk)
}

// reboot ends a server and starts it again, with what it has on its disk.
func (in *injector) reboot(n *redis.Node, disk redis.Disk) {
	if disk == redis.FromSave {
		n.Save()
		in.wait(time.Millisecond, 3*time.Second)
	}
	why := oracle.Forgotten
	if disk == redis.Everything {
		why = nothingLost
	}
	n.Kill()
	in.wait(time.Millisecond, 5*time.Second)
	in.retold(n, why)
	if disk == redis.Nothing {
		in.missing(true)
	}
	n.Restart(disk)
	in.run.seen.retell(n, in.run.of(n), why)
	if disk == redis.Nothing {
		in.wait(time.Millisecond, 2*time.Second)
		in.load(n)
	}
}

func (in *injector) missing(on bool) {
	o := in.run.seen
	o.locked(func() {
		if o.libMissing = time.Now(); on {
			o.libMissing, o.forgot = time.Now().Add(1000*time.Hour), true
		}
	})
}

func (in *injector) load(n *redis.Node) {
	n.Do("FUNCTION", "LOAD", "REPLACE", in.run.Source)
	in.missing(false)
}

func (in *injector) pause() {
	n := in.run.nodes[in.rng.IntN(len(in.run.nodes))]
	defer in.server("pause", n.Addr())()
	n.Pause()
	in.wait(time.Millisecond, 40*time.Second)
	n.Continue()
}

// readOnly refuses what writes, as a replica or a full server does.
func readOnly(cmd []string) redis.Error {
	if strings.EqualFold(cmd[0], "FCALL") && !strings.HasSuffix(cmd[1], "inspect") && !strings.HasSuffix(cmd[1], "version") {
		return "READONLY You can't write against a read only replica."
	}
	return ""
}

func (in *injector) refusal() {
	n := in.primary()
	which := in.rng.IntN(int(redis.ClusterDown) + 2)
	if redis.Condition(which) == redis.Busy { // rueidis panics when SUNSUBSCRIBE is answered with BUSY
		which++
	}
	defer in.server("refusal", fmt.Sprintf("%s, %d", n.Addr(), which))()
	if c := redis.Condition(which); c <= redis.ClusterDown {
		n.Set(c, true)
		defer n.Set(c, false)
	} else {
		n.Refuse(readOnly)
		defer n.Refuse(nil)
	}
	in.wait(time.Millisecond, 8*time.Second)
}

func (in *injector) migrate() {
	all := in.primaries()
	if in.run.kind != onCluster || len(all) < 2 {
		return
	}
	name := in.run.names[in.rng.IntN(len(in.run.names))]
	key, o := prefix+name, in.run.seen
	from := in.run.world.Owner(key)
	to := all[in.rng.IntN(len(all))]
	if from == to {
		return
	}
	defer in.server("migration", name+" to "+to.Addr())()
	// A lock that has no key is granted at its target from now on, by a redirection, and not only when all
	// keys have moved. That one does not know its tokens, and its clock can be behind them, or be stepped
	// back later.
	o.locked(func() { o.forgot = true })
	in.run.world.StartMigration(int(cluster.Slot(key)), to)
	in.wait(time.Millisecond, 2*time.Second)
	slot := cluster.Slot(key)
	var along []string // locks of the same slot
	for _, other := range in.run.names {
		if cluster.Slot(prefix+other) == slot {
			along = append(along, other)
		}
	}
	o.movingNow(along, true)
	in.run.world.MoveKeys(int(slot))
	o.movingNow(along, false)
	o.moved(along, to.Now().Sub(from.Now()), landing{to, to.Offset()})
	in.wait(time.Millisecond, 2*time.Second)
	in.run.world.FinishMigration(int(slot))
}

func (o *observer) movingNow(names []string, on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range names {
		o.moving[name] = on
	}
}

// moved notes that locks went to a server whose clock is ahead by so much.
func (o *observer) moved(names []string, ahead time.Duration, to landing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range names {
		l := o.locks[name]
		l.moved, l.landed = true, to
		if o.skewed && ahead.Abs() > time.Millisecond {
			l.lose(everybody, oracle.Differ)
			o.forgot = true
		}
	}
}

func (in *injector) flush() {
	n := in.primary()
	defer in.server("flush functions", n.Addr())()
	in.missing(true)
	n.Do("FUNCTION", "FLUSH")
	in.wait(time.Millisecond, 5*time.Second)
	in.load(n)
}

// gone deletes a lock's key by hand.
func (in *injector) gone(name string) {
	o := in.run.seen
	for _, n := range in.serving(name) {
		o.locked(func() {
			o.moving[name] = true
			o.locks[name].lose(everybody, oracle.Deleted)
			for w := range o.locks[name].wants { // nobody tells them
				w.asks = time.Now().Add(waitersSleep)
			}
		})
		n.Do("DEL", prefix+name)
		o.movingNow([]string{name}, false)
	}
}

func (in *injector) del() {
	name := in.run.names[in.rng.IntN(len(in.run.names))]
	defer in.server("del", name)()
	in.gone(name)
}

// loseAndRefuse deletes a lock's key, and refuses for a moment: a Release that crosses that is
// refused, and then told that the lock is another's.
func (in *injector) loseAndRefuse() {
	name := in.run.names[in.rng.IntN(len(in.run.names))]
	o := in.run.seen
	defer o.fault("loss and refusal", "%s", name)()
	for _, n := range in.primaries() {
		n.Refuse(readOnly)
	}
	in.gone(name)
	in.wait(time.Millisecond, 200*time.Millisecond)
	for _, n := range in.run.nodes {
		n.Refuse(nil)
	}
}

// clock steps a server's clock, or makes it run at another speed.
func (in *injector) clock() {
	n := in.run.nodes[in.rng.IntN(len(in.run.nodes))]
	drift := (in.rng.Float64() - 0.5) * 0.004
	offset := time.Duration(0)
	if in.rng.IntN(2) == 0 {
		drift = 0
		offset = time.Duration((in.rng.Float64() - 0.5) * float64(between(in.rng, 2*time.Millisecond, 20*time.Second)))
	}
	o := in.run.seen
	defer in.server("clock", fmt.Sprintf("%s offset %v drift %.4f", n.Addr(), offset, drift))()
	names, primary := in.run.of(n), n.Primary() == nil
	o.mu.Lock()
	o.drift[n] = drift
	o.skewed = true
	lost := nothingLost
	if offset > time.Until(n.Now()) { // also an earlier clock, if that one was behind
		lost = oracle.Forward
	}
	for _, name := range names {
		if primary && lost != nothingLost {
			o.locks[name].lose(everybody, lost)
		}
	}
	o.mu.Unlock()
	n.SetClock(offset, drift)
	if primary {
		o.retell(n, names, lost)
	}
}

// breakGrants breaks each lock a moment after it is handed over.
func (in *injector) breakGrants() {
	o := in.run.seen
	defer o.fault("break at a grant", "")()
	ctx, cancel := context.WithTimeout(in.ctx, between(in.rng, 100*time.Millisecond, 10*time.Second))
	defer cancel()
	grants := make(chan string, 1)
	o.locked(func() { o.onGrant = grants })
	for ctx.Err() == nil {
		select {
		case name := <-grants:
			pause(ctx, between(in.rng, time.Microsecond, 300*time.Millisecond))
			for _, n := range in.serving(name) {
				n.Do("FCALL", functions.Break, "1", prefix+name, functions.OptReason, "at its grant")
			}
		case <-ctx.Done():
		}
	}
	o.locked(func() { o.onGrant = nil })
}
