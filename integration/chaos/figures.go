package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// figures are what must not grow: sums over all client processes, and over all servers.
type figures struct {
	Heap        int64 `json:",omitempty"` // bytes that are reachable
	Goroutines  int64 `json:",omitempty"`
	Standing    int64 `json:",omitempty"` // workers that rest
	Connections int64 `json:",omitempty"` // that servers have
	Memory      int64 `json:",omitempty"` // used_memory
	Keys        int64 `json:",omitempty"`
}

// ownFigures measures this process.
func ownFigures(g *gate) figures {
	for range 2 { // what a finalizer or a sync.Pool has kept needs the second one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return figures{Heap: int64(m.HeapAlloc), Goroutines: int64(runtime.NumGoroutine()),
		Standing: int64(g.waiting())}
}

// serverFigures measures a server.
func serverFigures(addr string) (f figures, err error) {
	for section, fields := range map[string]map[string]*int64{
		"clients": {"connected_clients": &f.Connections},
		"memory":  {"used_memory": &f.Memory},
	} {
		m, err := probe(addr, "INFO", section)
		if err != nil {
			return f, err
		}
		text, _ := m.ToString()
		for row := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(row), ":")
			if to := fields[name]; to != nil {
				if *to, err = strconv.ParseInt(value, 10, 64); err != nil {
					return f, err
				}
			}
		}
	}
	m, err := probe(addr, "DBSIZE")
	if err != nil {
		return f, err
	}
	f.Keys, err = m.AsInt64()
	return f, err
}

func (f *figures) add(g figures) {
	f.Heap += g.Heap
	f.Goroutines += g.Goroutines
	f.Standing += g.Standing
	f.Connections += g.Connections
	f.Memory += g.Memory
	f.Keys += g.Keys
}

const mebibyte = 1 << 20

// growth is one figure early and late, and what it may be then.
type growth struct {
	name              string
	early, late, most int64
}

// growths compares. A pool of connections grows to the most calls that were under way at once, and
// a server's buffers with what came in at once: both can come late. What leaks goes on growing.
func growths(early, late figures) []growth {
	return []growth{
		{"heap of the clients", early.Heap, late.Heap, early.Heap*3/2 + 8*mebibyte},
		{"goroutines of the clients", early.Goroutines, late.Goroutines, early.Goroutines*3/2 + 20},
		{"connections at the servers", early.Connections, late.Connections,
			early.Connections*3/2 + 20},
		{"used_memory of the servers", early.Memory, late.Memory, early.Memory*3/2 + 8*mebibyte},
		{"keys", early.Keys, late.Keys, early.Keys},
	}
}

func (g growth) grown() bool { return g.late > g.most }

func (g growth) String() string {
	return fmt.Sprintf("%s: %d early, %d late, at most %d", g.name, g.early, g.late, g.most)
}
