// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// link is one end of an in-memory connection. Its buffers have no limit, so Write never blocks and
// a server may push while it holds its mutex. Latency is on the reading side: a writer that slept
// would make rueidis spin.
type link struct {
	in, out       *half
	local, remote string
	closed        func() // called by Close, if not nil
}

// half is one direction of a link.
type half struct {
	mu       sync.Mutex
	cond     *sync.Cond
	queue    []packet
	latency  time.Duration
	rng      *rand.Rand
	last     time.Time // when the last packet arrives: none overtakes another
	stalled  bool
	readErr  error // what the reader gets at once
	writeErr error // what the writer gets at once
	deadline time.Time
	timer    *time.Timer // wakes the reader at its deadline
	wake     *time.Timer // wakes the reader when a packet arrives
	wakeAt   time.Time
}

// packet is what one Write sent. The one without data is the end of the stream.
type packet struct {
	at   time.Time
	data []byte
}

func newHalf(seed, id uint64) *half {
	h := &half{rng: rand.New(rand.NewPCG(seed, id))}
	h.cond = sync.NewCond(&h.mu)
	return h
}

// newLink returns the client's and the server's end.
func newLink(client, server string, seed, id uint64) (*link, *link) {
	up, down := newHalf(seed, 2*id), newHalf(seed, 2*id+1)
	return &link{in: down, out: up, local: client, remote: server}, &link{in: up, out: down, local: server, remote: client}
}

func (h *half) poke() { h.mu.Lock(); h.cond.Broadcast(); h.mu.Unlock() }

func (h *half) read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		if h.readErr != nil {
			return 0, h.readErr
		}
		now := time.Now()
		if !h.deadline.IsZero() && !now.Before(h.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		if len(h.queue) > 0 && !h.stalled {
			if p := &h.queue[0]; !p.at.After(now) {
				return h.take(b, p)
			}
			h.alarm(now)
		}
		h.cond.Wait()
	}
}

func (h *half) take(b []byte, p *packet) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.data)
	if p.data = p.data[n:]; len(p.data) == 0 {
		h.queue = h.queue[1:]
	}
	return n, nil
}

// alarm makes sure that the reader looks again when the first packet arrives.
func (h *half) alarm(now time.Time) {
	at := h.queue[0].at
	switch {
	case h.wake == nil:
		h.wake = time.AfterFunc(at.Sub(now), h.poke)
	case !h.wakeAt.Equal(at):
		h.wake.Reset(at.Sub(now))
	}
	h.wakeAt = at
}

func (h *half) write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writeErr != nil {
		return 0, h.writeErr
	}
	if len(b) > 0 {
		h.send(append([]byte(nil), b...))
	}
	return len(b), nil
}

// send queues a packet. Each has its own part of a microsecond, so that no two events of different
// links share an instant: the runtime orders those at random.
func (h *half) send(data []byte) {
	at := time.Now()
	if h.latency > 0 {
		at = at.Add(h.latency + h.latency*time.Duration(h.rng.IntN(256))/1024 + time.Duration(h.rng.IntN(999)+1))
	}
	if !at.After(h.last) && h.latency > 0 {
		at = h.last.Add(1)
	}
	h.last = at
	h.queue = append(h.queue, packet{at, data})
	h.cond.Broadcast()
}

// finish sends the end of the stream after what was written. The writer can write no more.
func (h *half) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writeErr == nil {
		h.writeErr = net.ErrClosed
		h.send(nil)
	}
}

// stop makes the reader return at once, and drops what it has not read. The other side notices when
// it writes.
func (h *half) stop(read, write error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readErr == nil {
		h.readErr = read
	}
	if h.writeErr == nil {
		h.writeErr = write
	}
	h.queue = nil
	for _, t := range []*time.Timer{h.timer, h.wake} {
		if t != nil {
			t.Stop()
		}
	}
	h.cond.Broadcast()
}

func (h *half) setDeadline(t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = t
	if h.timer != nil {
		h.timer.Stop()
	}
	if !t.IsZero() && h.readErr == nil {
		h.timer = time.AfterFunc(time.Until(t), h.poke)
	}
	h.cond.Broadcast()
}

func (h *half) setStalled(on bool) {
	h.mu.Lock()
	h.stalled = on
	h.cond.Broadcast()
	h.mu.Unlock()
}

func (h *half) setLatency(d time.Duration) { h.mu.Lock(); h.latency = d; h.mu.Unlock() }

func (l *link) Read(b []byte) (int, error)  { return l.in.read(b) }
func (l *link) Write(b []byte) (int, error) { return l.out.write(b) }

// Close ends both directions: what was written arrives still, then the other side reads io.EOF.
func (l *link) Close() error {
	l.out.finish()
	l.in.stop(net.ErrClosed, netError("write", l.remote, l.local, syscall.EPIPE))
	if l.closed != nil {
		l.closed()
	}
	return nil
}

// reset ends both directions for both sides at once, as a TCP reset does.
func (l *link) reset() {
	for _, h := range []*half{l.in, l.out} {
		err := netError("read", l.local, l.remote, syscall.ECONNRESET)
		h.stop(err, netError("write", l.local, l.remote, syscall.ECONNRESET))
	}
}

func (l *link) LocalAddr() net.Addr                { return addr(l.local) }
func (l *link) RemoteAddr() net.Addr               { return addr(l.remote) }
func (l *link) SetDeadline(t time.Time) error      { l.in.setDeadline(t); return nil }
func (l *link) SetReadDeadline(t time.Time) error  { l.in.setDeadline(t); return nil }
func (l *link) SetWriteDeadline(t time.Time) error { return nil } // a write never blocks

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// netError looks as TCP's errors do: clients look at Op.
func netError(op, from, to string, errno syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Source: addr(from), Addr: addr(to), Err: os.NewSyscallError(op, errno)}
}
