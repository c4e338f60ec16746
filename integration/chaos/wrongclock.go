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

// wrong chooses by how much clocks of a quorum are wrong, in about every other round: of one or two
// servers, behind by up to an hour, or ahead by less than the guard. With more than that ahead, tokens
// may fall when others lose their memory.
func (s shape) wrong(random *rand.Rand) (list []time.Duration) {
	if !s.quorum() || random.IntN(2) == 0 || wallClock() == "" {
		return nil
	}
	for range 1 + random.IntN(s.spec.Servers/2) {
		most := []time.Duration{-time.Hour, -10 * time.Second, votingGuard / 2}[random.IntN(3)]
		list = append(list, time.Duration(random.Float64()*float64(most)).Round(time.Millisecond))
	}
	return list
}

// setWrong makes the clocks of the first servers wrong. The fault lasts until the func that it returns
// is called, which leaves them wrong.
func (v *servers) setWrong(h *history, list []time.Duration) (end func(), err error) {
	var target []string
	for i, by := range list {
		n := v.nodes[i]
		if _, err := n.Put(wallclock.File, wallclock.Ahead(by)); err != nil {
			return nil, err
		}
		if err := shows(n, by); err != nil {
			fmt.Fprintln(os.Stderr, "chaos: a clock is right:", err)
			continue
		}
		target = append(target, fmt.Sprintf("%s by %v", n.Addr, by))
	}
	if len(target) == 0 {
		return func() {}, nil
	}
	over := h.begin(fault{Kind: clockWrong, Target: strings.Join(target, ", ")})
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
