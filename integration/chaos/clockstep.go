package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/wallclock"
)

// clocks are those of a round's servers, if they are stepped. They are their lane's.
type clocks struct {
	nodes []*server.Node // whose clocks are stepped: all, or of a quorum a minority
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

// steps chooses whether the clocks of a round are stepped: forward in about every fourth round, and
// back too in another fourth, as far as its faults permit. Several servers that watch each other take a
// step for silence, so it is done to single servers only.
func (s shape) steps(random *rand.Rand, profile string) *clocks {
	c := &clocks{ahead: map[*server.Node]time.Duration{}, left: map[kind]time.Duration{}}
	way := random.IntN(4)
	if s.replicas > 0 || way > 1 || wallClock() == "" {
		return c
	}
	if s.permits(profile, clockForward) {
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

// stepped reports whether any are.
func (c *clocks) stepped() bool { return len(c.left) > 0 }

// back reports whether they are stepped back too. Then no server loses its memory.
func (c *clocks) back() bool {
	_, is := c.left[clockBack]
	return is
}

// choose notes the servers whose clocks are stepped. Where they cannot be, none is, and it is said why.
func (c *clocks) choose(s shape, nodes []*server.Node) error {
	if !c.stepped() {
		return nil
	}
	if s.quorum() {
		nodes = nodes[:len(nodes)/2]
	}
	c.nodes = nodes
	const trial = time.Hour
	for _, n := range nodes {
		if err := c.set(n, trial); err != nil {
			return err
		}
		fixed := shows(n, trial)
		if err := c.set(n, 0); err != nil {
			return err
		}
		if fixed != nil {
			fmt.Fprintln(os.Stderr, "chaos: clocks are not stepped:", fixed)
			*c = clocks{}
			return nil
		}
	}
	return nil
}

func (c *clocks) set(n *server.Node, ahead time.Duration) error {
	_, err := n.Put(wallclock.File, wallclock.Ahead(ahead))
	return err
}

// kinds are those of a lane in this round. A token may fall where a server loses its memory while its
// clock is behind what it was, so where clocks go back, none does.
func (c *clocks) kinds(lane int, list []kind) []kind {
	list = slices.Clone(list)
	if c.back() {
		list = slices.DeleteFunc(list, kind.losesMemory)
	}
	if lane == clockLane {
		list = slices.DeleteFunc(list, func(k kind) bool { _, stepped := c.left[k]; return !stepped })
	}
	return list
}

// longer is what a step adds to the longest lease.
func (c *clocks) longer() time.Duration {
	if c.back() {
		return mostBack
	}
	return 0
}

// clock steps the clock of a server.
func (l *lane) clock(k kind) error {
	do, target := l.servers.clocks.step(k, l.random)
	return l.strike(fault{Kind: k, Target: target}, do)
}

// step steps one clock. It is written at once, and the server reads it at each look at the time.
func (c *clocks) step(k kind, random *rand.Rand) (do func() error, target string) {
	n := c.nodes[random.IntN(len(c.nodes))]
	left := c.left[k]
	by := time.Duration(random.Float64() * float64(min(left, mostStep))).Round(time.Millisecond)
	c.left[k] -= by
	if k == clockBack {
		by = -by
	}
	return func() error {
		if left < 10*time.Millisecond {
			return errors.New("clocks were stepped by enough in this round")
		}
		c.ahead[n] += by
		return c.set(n, c.ahead[n])
	}, fmt.Sprintf("%s by %v", n.Addr, by)
}
