// SPDX-License-Identifier: Apache-2.0

package locktest

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// awaits is how long Await waits.
const awaits = time.Minute

// Take gives a lock to somebody else, whether it was held or free: what a holder finds that was
// paused for longer than its lease, or whose lock an operator deleted. The other one does not
// renew, so it holds the lock for lease, or until giveBack, which hands the lock to the next in
// line and does nothing if the lock is not its own any more.
//
// The holder's context ends when its client notices: within a round trip once it has held the lock
// alone for a second, and at its next renewal before that. The line is lost; waiters join it again within
// 1.5 s. Take fails the test if lease is not from 1 ms to a year.
func (s *Server) Take(name string, lease time.Duration) (giveBack func()) {
	s.tb.Helper()
	s.mu.Lock()
	s.others++
	owner := fmt.Sprintf("somebody-else-%d", s.others)
	s.mu.Unlock()
	key, ttl := s.key("Take", name), strconv.FormatInt(lease.Milliseconds(), 10)
	for {
		s.do("Take", "DEL", key)
		if _, taken := s.do("Take", "FCALL", functions.Acquire, "1", key, owner, ttl).(int64); taken {
			break
		}
		// A client was quicker. It had a microsecond, and has to be that quick again.
	}
	return func() { s.node.Do("FCALL", functions.Release, "1", key, owner) }
}

// Break takes a lock from its holder as Client.Break does, with that reason, and gives it to the
// next in line. The holder notices as with Take, but learns the reason (client.ErrBroken); one that
// waited for the lock notices at once. Break does nothing to a free lock.
func (s *Server) Break(name, reason string) {
	s.tb.Helper()
	s.do("Break", "FCALL", functions.Break, "1", s.key("Break", name), functions.OptReason, reason)
}

// Delete deletes a lock and its line, as an operator's DEL or an eviction does. Its holder and
// waiters notice as with Take.
func (s *Server) Delete(name string) {
	s.tb.Helper()
	s.do("Delete", "DEL", s.key("Delete", name))
}

// Expire ends the lease of a lock at the server, as if its holder had not renewed it in time, and
// gives the lock to the next in line. It does nothing to a free lock. It fails the test if the lock is
// limited or shared, where each holder has a lease: Cut off the one that is to lose its.
func (s *Server) Expire(name string) {
	s.tb.Helper()
	i := s.Inspect(name)
	switch {
	case !i.Held:
		return
	case i.Holder.Owner == "":
		s.tb.Fatalf("locktest: Expire: lock %q is limited or shared", name)
	}
	// In one call: between two, the holder could give the lock back.
	end := []string{"FCALL", functions.Release, "1", s.key("Expire", name), i.Holder.Owner}
	if _, joinable := s.node.Do(end...).(redis.Error); joinable {
		s.do("Expire", append(end, functions.OptAll)...)
	}
}

// Inspect returns how a lock stands at the server. Of the Holder only the Owner is set: compare it
// with Lock.Owner. It works while the Server is paused or cut off, and fails the test while it is
// stopped.
func (s *Server) Inspect(name string) client.Info {
	s.tb.Helper()
	r := s.do("Inspect", "FCALL_RO", functions.Inspect, "1", s.key("Inspect", name)).([]any)
	i := client.Info{
		Name: name, Held: r[0] == int64(1), Holds: int(r[2].(int64)),
		Remaining: time.Duration(r[4].(int64)) * time.Millisecond, Waiters: int(r[5].(int64)),
	}
	i.Holder.Owner, i.Fence, i.Why = r[1].(string), r[3].(int64), r[6].(string)
	return i
}

// Await blocks until a lock stands as the test wants it, and returns how that is. It fails the test
// after a minute.
func (s *Server) Await(name string, want func(client.Info) bool) client.Info {
	s.tb.Helper()
	over := time.NewTimer(awaits)
	defer over.Stop()
	tick := time.NewTicker(10 * time.Millisecond) // leases end without a change of the key
	defer tick.Stop()
	for {
		changed := s.next()
		info := s.Inspect(name)
		if want(info) {
			return info
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-over.C:
			s.tb.Fatalf("locktest: Await: after %v %s", awaits, describe(info))
		}
	}
}

// HeldBy fails the test, and lets it go on, unless the server says that this Lock's owner has the
// lock.
func (s *Server) HeldBy(l *client.Lock) {
	s.tb.Helper()
	slot := strconv.Itoa(max(1, l.Slot()))
	r := s.do("HeldBy", "FCALL_RO", functions.Holders, "1", s.key("HeldBy", l.Name()), slot).([]any)
	if len(r) < 3 || r[2] != l.Owner() {
		s.tb.Errorf("locktest: HeldBy: %s, not by %q", describe(s.Inspect(l.Name())), l.Owner())
	}
}

// Free fails the test, and lets it go on, unless nobody holds the lock or waits for it. A kept slot is held.
func (s *Server) Free(name string) {
	s.tb.Helper()
	if i := s.Inspect(name); i.Held || i.Waiters > 0 {
		s.tb.Errorf("locktest: Free: %s", describe(i))
	}
}

func describe(i client.Info) string {
	if !i.Held {
		return fmt.Sprintf("lock %q is %s, with %d waiting", i.Name, i.Why, i.Waiters)
	}
	if i.Holder.Owner == "" {
		return fmt.Sprintf("lock %q is %s, with %d holders and %d waiting", i.Name, i.Why, i.Holds, i.Waiters)
	}
	return fmt.Sprintf("lock %q is held by %q for %v, with %d waiting", i.Name, i.Holder.Owner, i.Remaining, i.Waiters)
}

func (s *Server) key(method, name string) string {
	s.tb.Helper()
	if name == "" {
		s.tb.Fatalf("locktest: %s: the lock's name must not be empty", method)
	}
	return s.Prefix + name
}

// do runs a command on the server, without the network. An error fails the test.
func (s *Server) do(method string, words ...string) any {
	s.tb.Helper()
	reply := s.node.Do(words...)
	if err, failed := reply.(redis.Error); failed {
		s.tb.Fatalf("locktest: %s: %v", method, err)
	}
	return reply
}
