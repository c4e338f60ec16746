// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection through a Proxy. It is closed as a whole: when one
// side ends, what the other still says is of no use in a test.
type link struct {
	proxy    *Proxy
	client   net.Conn
	upstream *net.TCPConn
	doomed   atomic.Bool   // its replies are no longer delivered
	done     chan struct{} // closed by close
	once     sync.Once
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		l.client.Close()
		l.upstream.Close()
	})
}

// requests forwards from the client to the server. After a request whose reply
// is to be lost the server gets to see the end of the connection, but only
// behind the request: it runs that, and then hangs up, which is the proof that
// it ran. Then replies closes the link.
func (l *link) requests() {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buf)
		if err != nil {
			if !l.doomed.Load() {
				l.close()
			}
			return
		}
		if l.proxy.drop(buf[:n]) {
			l.doomed.Store(true)
		}
		if !l.forward(toServer, l.upstream, buf[:n]) {
			l.close()
			return
		}
		if l.doomed.Load() {
			// Fails only if the server has hung up already.
			_ = l.upstream.CloseWrite()
			return
		}
	}
}

// replies forwards from the server to the client.
func (l *link) replies() {
	defer l.proxy.forget(l)
	defer l.close()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.upstream.Read(buf)
		if err != nil {
			return
		}
		if !l.doomed.Load() && !l.forward(toClient, l.client, buf[:n]) {
			return
		}
	}
}

// forward writes, after the proxy's delay, unless the proxy is stalled; then it
// first blocks until Resume or the end of the link. It returns false when the
// link is at its end.
func (l *link) forward(w way, to net.Conn, b []byte) bool {
	if d := l.proxy.delayed(); d > 0 {
		select {
		case <-time.After(d):
		case <-l.done:
			return false
		}
	}
	for {
		l.proxy.gate.RLock()
		stalled := l.proxy.stall(w)
		if stalled == nil {
			_, err := to.Write(b)
			l.proxy.gate.RUnlock()
			return err == nil
		}
		l.proxy.gate.RUnlock()
		select {
		case <-stalled:
		case <-l.done:
			return false
		}
	}
}

func (p *Proxy) stall(w way) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stalled[w]
}

func (p *Proxy) delayed() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// drop reports whether the reply to these requests is to be lost, and counts it.
func (p *Proxy) drop(requests []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drops == 0 || !bytes.Contains(requests, p.text) {
		return false
	}
	p.drops--
	p.dropped++
	return true
}
