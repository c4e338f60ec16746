// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"io"
	"net"
	"sync"
)

// Serve accepts real connections for a node until the listener is closed, and returns when all of
// them have ended.
func (n *Node) Serve(l net.Listener) error {
	var pumps sync.WaitGroup
	defer pumps.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		n.world.mu.Lock()
		n.world.serial++
		id := n.world.serial
		n.world.mu.Unlock()
		client, server := newLink(conn.RemoteAddr().String(), n.addr, n.world.opt.Seed, id)
		if !n.serve(server, id, func() {}) {
			_ = conn.Close()
			continue
		}
		pumps.Go(func() { pump(client, conn) }) // the buffer between a slow client and a node that pushes
		pumps.Go(func() { pump(conn, client) })
	}
}

func pump(to io.WriteCloser, from io.Reader) {
	_, _ = io.Copy(to, from) // a connection that breaks is closed, both ways
	_ = to.Close()
}
