// SPDX-License-Identifier: Apache-2.0

package locktest

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// Addr is the address that clients know the Server by. It exists only in their dialer.
const Addr = "redis.locktest:6379"

// latency is how long a packet takes. Without it a loop of calls would stop the time of a bubble.
const latency = 100 * time.Microsecond

// Server is a Redis in memory with the functions library loaded. Make it with New.
type Server struct {
	// Prefix and a name make the key of a lock, in all methods that take a name: the Config.Prefix
	// of the clients. Default "lock:". Set it before other goroutines use the Server.
	Prefix string

	tb    testing.TB
	world *redis.World
	node  *redis.Node

	mu      sync.Mutex // a leaf: held over nothing
	ended   bool
	clients map[*client.Client]string // and the hosts that they are on
	hosts   int
	others  int           // owners that Take has made up
	changed chan struct{} // closed at the next change of a key
}

// New starts a Server for the time of the test: the test's cleanup closes the Server and its
// clients, and no goroutine is left after it: what looks for those is a cleanup from before New, as deferred
// calls run while the Server does. In a synctest bubble, tb is that of the bubble.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{Prefix: "lock:", tb: tb, clients: map[*client.Client]string{}, changed: make(chan struct{})}
	s.world = redis.New(redis.Options{
		Latency: latency,
		Hooks:   redis.Hooks{Write: func(redis.Write) { s.announce() }},
		Unmodelled: func(_, text string) {
			s.complain("a command was sent that the test's Redis does not model: %s", text)
		},
	})
	s.node = s.world.Node(Addr)
	tb.Cleanup(s.close)
	s.load()
	s.remember()
	return s
}

// remember makes the server's memory old enough for any guard, as that of one that runs for long is.
func (s *Server) remember() {
	memory, _ := s.node.Do("FCALL", functions.Memory, "0").([]any)
	if len(memory) != 3 {
		s.tb.Fatalf("locktest: %s: %v", functions.Memory, memory)
	}
	s.node.Do("FCALL", functions.Memory, "0", memory[0].(string), memory[1].(string), "1")
}

func (s *Server) load() {
	s.tb.Helper()
	if got := s.node.Do("FUNCTION", "LOAD", functions.Source); got != functions.Library {
		s.tb.Fatalf("locktest: the library does not load: %v", got)
	}
}

// Client opens a client on the Server, on a host of its own. It blocks while it connects. The
// client is closed at the end of the test; closing it earlier does no harm. Where cfg has no
// Logger, it logs to the test.
//
// Client fails the test if cfg is invalid or the Server cannot be reached.
func (s *Server) Client(cfg client.Config) *client.Client {
	s.tb.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(logWriter{s}, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	}
	host := s.host()
	c, err := client.Open(s.option(host), cfg)
	if err != nil {
		s.tb.Fatalf("locktest: Client: %v", err)
	}
	s.mu.Lock()
	s.clients[c] = host
	s.mu.Unlock()
	return c
}

// ClientOption returns what client.Open or rueidis.NewClient needs to reach the Server, for code
// that opens clients itself. The test must close these. Cut and Restore without arguments touch
// them too.
func (s *Server) ClientOption() rueidis.ClientOption { return s.option(s.host()) }

func (s *Server) host() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts++
	return fmt.Sprintf("client-%d", s.hosts)
}

func (s *Server) option(host string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{Addr},
		ForceSingleClient: true,
		// rueidis spins in that time when a connection ends, and a bubble's time stands still for
		// ever.
		MaxFlushDelay: -1,
		DialCtxFn: func(ctx context.Context, to string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
			return s.world.Host(host).Dial(ctx, to, d, cfg)
		},
	}
}

// close ends the clients while everything works, so that none of them has to wait.
func (s *Server) close() {
	s.heal()
	s.mu.Lock()
	var all []*client.Client
	for c := range s.clients {
		all = append(all, c)
	}
	s.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range all {
		closing.Go(c.Close)
	}
	closing.Wait()
	if inBubble() {
		time.Sleep(10 * time.Second) // time stops at the end of the test, and late timers with it
	}
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.world.Close()
}

func inBubble() (yes bool) {
	defer func() { yes = recover() == nil }() // Wait panics outside of bubbles
	synctest.Wait()
	return true
}

// announce wakes those who wait for a change. It runs under the node's mutex.
func (s *Server) announce() {
	s.mu.Lock()
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
}

func (s *Server) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// complain fails the test from any goroutine, unless the test has ended.
func (s *Server) complain(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.tb.Errorf("locktest: "+format, args...)
	}
}

// logWriter makes log lines part of the test's output. A test that has ended takes none.
type logWriter struct{ s *Server }

func (w logWriter) Write(line []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if !w.s.ended {
		w.s.tb.Log(strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
