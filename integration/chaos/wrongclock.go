package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
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

// wrongClocks makes the clocks of one or two servers of a quorum wrong, in about every other round: behind
// by up to an hour, or ahead by less than the guard. With more than that ahead, tokens may fall when
// others lose their memory. The fault lasts until the func that it returns is called, which leaves
// them wrong.
func (v *servers) wrongClocks(h *history, random *rand.Rand) (end func(), err error) {
	if !v.shape.quorum() || wallClock() == "" || random.IntN(2) == 0 {
		return func() {}, nil
	}
	var list []string
	for _, i := range random.Perm(len(v.nodes))[:1+random.IntN(len(v.nodes)/2)] {
		span := []time.Duration{-time.Hour, -10 * time.Second, votingGuard / 2}[random.IntN(3)]
		by := time.Duration(random.Float64() * float64(span)).Round(time.Millisecond)
		n := v.nodes[i]
		if _, err := n.Put(wallclock.File, wallclock.Ahead(by)); err != nil {
			return nil, err
		}
		if err := shows(n, by); err != nil {
			fmt.Fprintln(os.Stderr, "chaos: a clock is right:", err)
			continue
		}
		list = append(list, fmt.Sprintf("%s by %v", n.Addr, by))
	}
	if len(list) == 0 {
		return func() {}, nil
	}
	over := h.begin(fault{Kind: clockWrong, Target: strings.Join(list, ", ")})
	return func() { over(nil) }, nil
}

// shows reports an error if a server does not take its time from the clock.
func shows(n *server.Node, by time.Duration) error {
	m, err := probe(n.Addr, "TIME")
	if err != nil {
		return err
	}
	parts, err := m.AsIntSlice()
	if err != nil {
		return err
	}
	off := time.Until(time.Unix(parts[0], parts[1]*1000)) - by
	if off.Abs() > time.Second/2 {
		return fmt.Errorf("the clock of %s is not that of its library, but %v off: is the server linked "+
			"statically?", n.Addr, off)
	}
	return nil
}
