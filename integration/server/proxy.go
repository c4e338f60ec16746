// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy is a TCP proxy in front of a node, for faults of the network. Its
// methods are safe for concurrent use.
type Proxy struct {
	Addr string // where clients connect to

	target   string
	listener net.Listener
	working  sync.WaitGroup // the accepting goroutine and two for each link

	mu      sync.Mutex
	closed  bool
	links   map[*link]struct{}
	gate    sync.RWMutex     // held for reading while bytes are forwarded
	stalled [2]chan struct{} // by way, under mu; nil, or closed by Resume
	delay   time.Duration    // under mu

	text    []byte // under mu; requests that contain it lose their reply
	drops   int    // under mu; how many replies are still to be dropped
	dropped int    // under mu
}

// NewProxy starts a proxy in front of a node's Addr, for the time of the test.
func NewProxy(tb testing.TB, addr string) *Proxy {
	tb.Helper()
	p, err := StartProxy(addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// StartProxy starts a proxy in front of an address. The caller must Close it.
func StartProxy(addr string) (*Proxy, error) {
	// A port of freePort is not taken by an outgoing connection either; someone
	// else can be faster.
	var err error
	for range 10 {
		var port int
		if port, err = freePort(); err != nil {
			break
		}
		var l net.Listener
		if l, err = net.Listen("tcp", address(port)); err == nil {
			p := &Proxy{Addr: address(port), target: addr, listener: l, links: map[*link]struct{}{}}
			p.working.Go(p.accept)
			return p, nil
		}
	}
	return nil, fmt.Errorf("server: proxy: %w", err)
}

// way is one of the two directions of a connection.
type way int

const (
	toServer way = iota
	toClient
)

// Stall stops forwarding in both directions and keeps the connections open, new
// ones too: to both sides the network is silent. When Stall returns, no further
// byte is forwarded. Resume goes on with what arrived in the meantime.
func (p *Proxy) Stall() { p.hush(toServer, toClient) }

// StallRequests is Stall for what clients send: the server still gets through to
// them.
func (p *Proxy) StallRequests() { p.hush(toServer) }

// StallReplies is Stall for what the server sends: it still runs the requests.
func (p *Proxy) StallReplies() { p.hush(toClient) }

func (p *Proxy) hush(ways ...way) {
	p.mu.Lock()
	for _, w := range ways {
		if p.stalled[w] == nil {
			p.stalled[w] = make(chan struct{})
		}
	}
	p.mu.Unlock()
	p.gate.Lock()
	//lint:ignore SA2001 the lock is taken to wait for the writes under way
	p.gate.Unlock()
}

// Resume ends a Stall of either kind.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w, stalled := range p.stalled {
		if stalled != nil {
			close(stalled)
			p.stalled[w] = nil
		}
	}
}

// Delay holds up each piece that arrives from now on, in both directions, for so
// long. Pieces of one direction of a connection keep their order. 0 ends it.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Cut closes all connections of the moment, stalled or not. New ones are
// served.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// DropReplies makes the proxy lose the replies to the next n requests that
// contain text (any request if text is empty): the request is forwarded, the
// server runs it, and then the client's connection is closed. Replies of that
// connection that were under way are lost too. A new call replaces the last;
// n = 0 ends it. Requests are recognised in what arrives in one piece, which
// holds for all but very large pipelines; one piece counts once.
func (p *Proxy) DropReplies(n int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drops, p.dropped, p.text = n, 0, []byte(text)
}

// Dropped returns how many replies were lost since the last DropReplies, counted when
// the request arrives.
func (p *Proxy) Dropped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// Links returns how many connections there are.
func (p *Proxy) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Close ends the proxy and all its connections, and blocks until they are gone.
// It is safe to repeat.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Cut()
	p.working.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// accept makes a link for each client until the listener is closed. A node
// that is down shows as a connection that is closed at once.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		upstream, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		l := &link{proxy: p, client: client, upstream: upstream.(*net.TCPConn), done: make(chan struct{})}
		if !p.add(l) {
			l.close()
			continue
		}
		p.working.Go(l.requests)
		p.working.Go(l.replies)
	}
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.links[l] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
