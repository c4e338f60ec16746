package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/wallclock"
)

// wallClock is the library for clocks that can be wrong, or "", and then it is said why.
var wallClock = sync.OnceValue(func() string {
	library, err := wallclock.Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: all servers' clocks are right:", err)
	}
	return library
})

// clocks are those of a round's servers: right, wrong all the time, or stepped by a lane.
type clocks struct {
	wrong []time.Duration // of the first servers
	nodes []*server.Node  // whose clocks are stepped: all, or of a quorum a minority
	ahead map[*server.Node]time.Duration
	left  map[kind]time.Duration // by how much they may be stepped yet
}

// By how much clocks are stepped in a round. A step back prolongs leases, and nobody waits for ever.
// Of a quorum, a server that comes back empty has the right time, and tokens may fall where that is
// more than the guard behind the time of before.
const (
	mostBack          = 20 * time.Second
	mostForward       = 5 * time.Minute
	mostStep          = 10 * time.Second // at a time
	mostVotersForward = votingGuard / 2
)

// clocks chooses those of a round. Of a quorum they are wrong in about every other round: of one or two
// servers, behind by up to an hour, or ahead by less than the guard. With more than that ahead, tokens may
// fall when others lose their memory.
//
// In other rounds they are stepped: forward in about every fourth one, and back too in another fourth, as
// far as its faults permit. Several servers that watch each other take a step for silence, so it is done to
// single servers only.
func (s shape) clocks(random *rand.Rand, profile string) *clocks {
	c := &clocks{ahead: map[*server.Node]time.Duration{}, left: map[kind]time.Duration{}}
	if s.replicas > 0 || wallClock() == "" {
		return c
	}
	if s.quorum() && random.IntN(2) == 0 {
		for range 1 + random.IntN(s.spec.Servers/2) {
			most := []time.Duration{-time.Hour, -10 * time.Second, votingGuard / 2}[random.IntN(3)]
			c.wrong = append(c.wrong, time.Duration(random.Float64()*float64(most)).Round(time.Millisecond))
		}
		return c
	}
	way := random.IntN(4)
	if way < 2 && s.permits(profile, clockForward) {
		c.left[clockForward] = mostForward
		if s.quorum() {
			c.left[clockForward] = mostVotersForward
		}
	}
	if way == 1 && s.permits(profile, clockBack) {
		c.left[clockBack] = mostBack
	}
	return c
}

// used reports whether any are not right all the time.
func (c *clocks) used() bool { return len(c.wrong)+len(c.left) > 0 }

// back reports whether they are stepped back too. Then no server loses its memory.
func (c *clocks) back() bool {
	_, is := c.left[clockBack]
	return is
}

// begin sets those that are wrong. Where clocks cannot be set, all are right, and it is said why.
func (c *clocks) begin(h *history, s shape, nodes []*server.Node) error {
	if !c.used() {
		return nil
	}
	if s.quorum() {
		nodes = nodes[:len(nodes)/2]
	}
	const trial = time.Hour
	one := nodes[0] // the others are alike
	if err := c.set(one, trial); err != nil {
		return err
	}
	failed := shows(one, trial)
	if err := c.set(one, 0); err != nil {
		return err
	}
	if failed != nil {
		fmt.Fprintln(os.Stderr, "chaos: all clocks are right:", failed)
		*c = clocks{}
		return nil
	}
	c.nodes = nodes
	for i, by := range c.wrong {
		over := h.begin(fault{Kind: clockWrong, Target: fmt.Sprintf("%s by %v", nodes[i].Addr, by), Detail: "all the time"})
		err := c.set(nodes[i], by)
		if over(err); err != nil {
			return err
		}
	}
	return nil
}

func (c *clocks) set(n *server.Node, ahead time.Duration) error {
	_, err := n.Put(wallclock.File, wallclock.Ahead(ahead))
	return err
}

// shows reports an error if a server does not take its time from the clock.
func shows(n *server.Node, by time.Duration) error {
	m, err := probe(n, "TIME")
	if err != nil {
		return err
	}
	parts, err := m.AsIntSlice()
	if err != nil {
		return err
	}
	off := time.Until(time.Unix(parts[0], parts[1]*1000)) - by
	if off.Abs() > time.Second/2 {
		return fmt.Errorf("the clock of %s is not that of its library, but %v off: is the server linked statically?",
			n.Addr, off)
	}
	return nil
}

// kinds are those of a lane in this round. A token may fall where a server loses its memory while its
// clock is behind what it was, so where clocks go back, none does.
func (c *clocks) kinds(lane int, list []kind) []kind {
	return slices.DeleteFunc(slices.Clone(list), func(k kind) bool {
		_, stepped := c.left[k]
		return c.back() && k.losesMemory() || lane == clockLane && !stepped
	})
}

// longer is what a step adds to the longest lease.
func (c *clocks) longer() time.Duration {
	if c.back() {
		return mostBack
	}
	return 0
}

// clock steps the clock of a server. It is written at once, and the server reads it at each look at the time.
func (l *lane) clock(k kind) error {
	c := l.servers.clocks
	n, left := c.nodes[l.random.IntN(len(c.nodes))], c.left[k]
	by := time.Duration(l.random.Float64() * float64(min(left, mostStep))).Round(time.Millisecond)
	c.left[k] -= by
	if k == clockBack {
		by = -by
	}
	return l.strike(fault{Kind: k, Target: fmt.Sprintf("%s by %v", n.Addr, by)}, func() error {
		if left < 10*time.Millisecond {
			return errors.New("clocks were stepped by enough in this round")
		}
		c.ahead[n] += by
		return c.set(n, c.ahead[n])
	})
}
