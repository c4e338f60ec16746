// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/holdfast-go/holdfast/integration/reroute"
	"github.com/holdfast-go/holdfast/integration/server"
)

// mesh is the proxies between the servers of a deployment, sentinels too: one for each server that
// connects, and each port that it may connect to.
type mesh struct {
	nodes   []*server.Node
	proxies map[path]proxies // by who connects, and to whom
}

// path is from one server to another one.
type path struct{ from, to *server.Node }

func (p path) back() path { return path{p.to, p.from} }

// rerouter is the library that makes servers connect through a mesh, or "", and then it is said why.
var rerouter = sync.OnceValue(func() string {
	library, err := reroute.Build()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos: servers are not cut off from each other:", err)
	}
	return library
})

// newMesh starts the proxies, and tells the servers of them. It does so before they run: links that
// there are already would not go through it.
func newMesh(d *server.Deployment) (*mesh, error) {
	m := &mesh{nodes: slices.Concat(d.Nodes(), d.Sentinels()), proxies: map[path]proxies{}}
	for _, from := range m.nodes {
		routes := map[int]int{}
		for _, to := range m.nodes {
			if to == from {
				continue
			}
			for _, port := range to.Ports() {
				p, err := server.StartProxy(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
				if err != nil {
					return m, err
				}
				m.proxies[path{from, to}] = append(m.proxies[path{from, to}], p)
				_, through, _ := net.SplitHostPort(p.Addr)
				if routes[port], err = strconv.Atoi(through); err != nil {
					return m, err
				}
			}
		}
		if _, err := from.Put(reroute.File, reroute.Routes(routes)); err != nil {
			return m, err
		}
	}
	return m, nil
}

// used reports whether servers connect through the mesh.
func (m *mesh) used() bool {
	for _, list := range m.proxies {
		if slices.ContainsFunc(list, func(p *server.Proxy) bool { return p.Links() > 0 }) {
			return true
		}
	}
	return false
}

// silence lets nothing arrive of what is sent on these paths, whoever of the two connected.
func (m *mesh) silence(paths []path) {
	for _, way := range paths {
		m.proxies[way].each((*server.Proxy).StallRequests)
		m.proxies[way.back()].each((*server.Proxy).StallReplies)
	}
}

// heal ends the silence of these paths.
func (m *mesh) heal(paths []path, hangUp bool) {
	for _, way := range paths {
		slices.Concat(m.proxies[way], m.proxies[way.back()]).resume(hangUp)
	}
}

// close ends all proxies. There may be no mesh.
func (m *mesh) close() error {
	if m == nil {
		return nil
	}
	return slices.Concat(slices.Collect(maps.Values(m.proxies))...).close()
}
