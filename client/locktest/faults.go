// SPDX-License-Identifier: Apache-2.0

package locktest

import (
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// Cut cuts the network between the Server and these clients, all clients if none is named. Nothing
// is refused: packets are on their way until Restore, and arrive then, as in a network that lost
// its route for a while. New connections wait, and give up after the dialer's timeout (5 s).
//
// It fails the test if a client is not one of Client.
func (s *Server) Cut(clients ...*client.Client) {
	s.tb.Helper()
	for _, p := range s.paths("Cut", clients) {
		s.world.Stall(p, redis.Both)
	}
}

// Restore ends a Cut. Without arguments it ends all of them.
func (s *Server) Restore(clients ...*client.Client) {
	s.tb.Helper()
	for _, p := range s.paths("Restore", clients) {
		s.world.Resume(p)
	}
}

func (s *Server) paths(method string, clients []*client.Client) []redis.Path {
	s.tb.Helper()
	if len(clients) == 0 {
		return []redis.Path{{}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []redis.Path
	for i, c := range clients {
		host, known := s.clients[c]
		if !known {
			s.tb.Fatalf("locktest: %s: argument %d is no client of this Server's Client method", method, i+1)
		}
		out = append(out, redis.Path{Host: host})
	}
	return out
}

// Pause freezes the server as a SIGSTOP does: connections stay, and nothing is answered. What was
// sent meanwhile is executed at Resume.
func (s *Server) Pause() { s.node.Pause() }

// Resume ends a Pause.
func (s *Server) Resume() { s.node.Continue() }

// Stop ends the server: connections are closed and new ones refused.
func (s *Server) Stop() { s.node.Kill() }

// Start starts the server again after Stop, with its data. The library has forgotten what it had in
// memory, as after every restart.
func (s *Server) Start() { s.node.Restart(redis.Everything) }

// Full makes the server refuse what needs memory (OOM), or not any more: locks can be renewed and
// released, but not acquired.
func (s *Server) Full(on bool) { s.node.Set(redis.Full, on) }

// Failover puts another server in this one's place, as a failover behind one address does: all
// connections end, and the data stays, but for the locks that are named. These had not been
// replicated, so the new server does not know them. One that was stopped runs again.
func (s *Server) Failover(lost ...string) {
	s.tb.Helper()
	var keys []string
	for _, name := range lost {
		keys = append(keys, s.key("Failover", name))
	}
	s.world.Refuse(redis.Path{}, true)
	defer s.world.Refuse(redis.Path{}, false)
	s.node.Restart(redis.Everything)
	for _, key := range keys {
		s.do("Failover", "DEL", key)
	}
}

// Forget makes the server lose all its data, as a restart without persistence does. The library is
// loaded again at once. One that was stopped runs again.
func (s *Server) Forget() {
	s.tb.Helper()
	s.world.Refuse(redis.Path{}, true)
	defer s.world.Refuse(redis.Path{}, false)
	s.node.Restart(redis.Nothing)
	s.load()
}

// heal ends all faults.
func (s *Server) heal() {
	s.world.Resume(redis.Path{})
	s.node.Continue()
	s.node.Set(redis.Full, false)
}
