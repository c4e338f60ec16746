// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"strconv"

	"github.com/holdfast-go/holdfast/integration/server"
)

// figures are what must not grow: sums over all client processes, and over all servers.
type figures map[string]int64

// The figures.
const (
	heap        = "heap of the clients" // bytes that are reachable
	goroutines  = "goroutines of the clients"
	resting     = "workers that rest"
	connections = "connections at the servers"
	memory      = "used_memory of the servers"
	keys        = "keys"
)

// ownFigures measures this process.
func ownFigures(g *gate) figures {
	for range 2 { // what a finalizer or a sync.Pool has kept needs the second one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return figures{heap: int64(m.HeapAlloc), goroutines: int64(runtime.NumGoroutine()), resting: g.standing.Load()}
}

// serverFigures measures a server.
func serverFigures(n *server.Node) (f figures, err error) {
	f = figures{}
	for _, of := range [][3]string{{connections, "clients", "connected_clients"}, {memory, "memory", "used_memory"}} {
		if f[of[0]], err = strconv.ParseInt(info(n, of[1], of[2]), 10, 64); err != nil {
			return nil, err
		}
	}
	m, err := probe(n, "DBSIZE")
	if err != nil {
		return nil, err
	}
	f[keys], err = m.AsInt64()
	return f, err
}

func (f figures) add(g figures) {
	for name, n := range g {
		f[name] += n
	}
}

const mebibyte = 1 << 20

// growth is one figure early and late, and what it may be then.
type growth struct {
	name              string
	early, late, most int64
}

// growths compares. A pool of connections grows to the most calls that were under way at once, and
// a server's buffers with what came in at once: both can come late. What leaks goes on growing.
func growths(early, late figures) (list []growth) {
	for _, one := range []struct {
		name  string
		extra int64
	}{{heap, 8 * mebibyte}, {goroutines, 20}, {connections, 20}, {memory, 8 * mebibyte}} {
		n := early[one.name]
		list = append(list, growth{one.name, n, late[one.name], n*3/2 + one.extra})
	}
	return append(list, growth{keys, early[keys], late[keys], early[keys]})
}

func (g growth) grown() bool { return g.late > g.most }

func (g growth) String() string {
	return fmt.Sprintf("%s: %d early, %d late, at most %d", g.name, g.early, g.late, g.most)
}
