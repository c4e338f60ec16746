// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/cluster"
)

// Waiter is one place of a line.
type Waiter struct {
	Position int `json:"position"` // the first is 1
	Who
	Since   *time.Time `json:"since,omitempty"` // when it began to wait, by its own clock, if its owner string tells
	AskedMS int64      `json:"asked_ms"`        // how long ago it asked last; most ask every 1.5 s
	LeaseMS int64      `json:"lease_ms"`        // what it will have
	Wants   string     `json:"wants"`           // the lock: "alone", "shared", or "limit 3"
	Hears   Hears      `json:"hears"`
	channel string
}

// Hears says how a waiter learns that the lock is its own.
type Hears string

// A waiter that is Deaf when its turn comes is passed over, and so is one that polls and did not
// ask for 5 s.
const (
	Listening Hears = "listening" // its channel has a subscriber at the primary
	Deaf      Hears = "deaf"      // it has none
	Polling   Hears = "polling"   // it has no channel, and asks again and again
	Unknown   Hears = "unknown"   // the server does not say
)

// Line is who waits for a lock.
type Line struct {
	Waiters []Waiter // the first ones, in order
	Total   int      // how many wait
}

// Line reads the hash of the lock, which functions/README.md describes, in pages: who comes or goes
// meanwhile may be missing. Of a quorum it is the line at the server that has the longest. limit 0
// returns all.
func (v *View) Line(ctx context.Context, name string, limit int) (Line, error) {
	var longest Line
	var failed []error
	now := v.Now(ctx)
	servers := v.servers()
	for _, redis := range servers {
		line, err := readLine(ctx, redis, v.Key(name), limit, now)
		if err != nil {
			failed = append(failed, err)
		}
		if line.Total > longest.Total {
			longest = line
		}
	}
	if len(failed) < len(servers) {
		return longest, nil
	}
	return Line{}, errors.Join(failed...)
}

const page = 500 // places that are read at once

func readLine(ctx context.Context, redis rueidis.Client, key string, limit int, now time.Time) (Line, error) {
	state, err := fields(ctx, redis, key, "state")
	if err != nil || state[0] == "" {
		return Line{}, err
	}
	s, ok := parseState(state[0])
	if !ok {
		return Line{}, fmt.Errorf("%w: its state is %q", client.ErrNotALock, state[0])
	}
	line := Line{Total: int(s.waiters)}
	for at := s.head; at < s.tail; {
		var names []string
		for n := at; n < min(at+page, s.tail); n++ {
			names = append(names, "w:"+strconv.FormatInt(n, 10))
		}
		entries, err := fields(ctx, redis, key, names...)
		if err != nil {
			return line, err
		}
		if !slices.ContainsFunc(entries, func(entry string) bool { return entry != "" }) {
			break // the library leaves no such gap: somebody else wrote the state, or all were served meanwhile
		}
		past := at + int64(len(entries))
		for n := at; n < min(past, at+int64(len(entries))); n++ {
			entry := entries[n-at]
			if to, isRun := strings.CutPrefix(entry, ">"); isRun { // of gaps
				if last, err := strconv.ParseInt(to, 10, 64); err == nil && last > n {
					past, n = max(past, last+1), last
				}
				continue
			}
			w, ok := parseWaiter(entry, now)
			if !ok {
				continue // a gap, or served meanwhile
			}
			w.Position = len(line.Waiters) + 1
			line.Waiters = append(line.Waiters, w)
			if n := len(line.Waiters); n == limit || n == line.Total {
				return line, hearing(ctx, redis, key, line.Waiters)
			}
		}
		at = past
	}
	return line, hearing(ctx, redis, key, line.Waiters)
}

// fields are those of a hash; "" for one that is not there.
func fields(ctx context.Context, redis rueidis.Client, key string, names ...string) ([]string, error) {
	got, err := redis.Do(ctx, redis.B().Hmget().Key(key).Field(names...).Build()).ToArray()
	if err != nil {
		if reply, ok := rueidis.IsRedisErr(err); ok && strings.HasPrefix(reply.Error(), "WRONGTYPE") {
			return make([]string, len(names)), nil // a plain string of another service: nobody waits
		}
		return nil, fmt.Errorf("reading the line: %w", err)
	}
	texts := make([]string, len(got))
	for i, field := range got {
		texts[i], _ = field.ToString()
	}
	return texts, nil
}

// hearing asks the lock's server which channels have a subscriber there. If it does not say, that is
// Unknown, and no error.
func hearing(ctx context.Context, redis rueidis.Client, key string, waiters []Waiter) error {
	slotted := redis.Mode() == rueidis.ClientModeCluster
	known := map[string]Hears{"": Polling}
	var asked []string
	var asks rueidis.Commands
	for _, w := range waiters {
		if _, is := known[w.channel]; is {
			continue
		}
		known[w.channel] = Unknown
		if slotted && cluster.Slot(w.channel) != cluster.Slot(key) {
			known[w.channel] = Deaf // what is published for the lock does not get there
			continue
		}
		asked = append(asked, w.channel)
		// as a key, so that a Cluster's client asks the node that has the slot
		asks = append(asks, redis.B().Arbitrary("PUBSUB", "SHARDNUMSUB").Keys(w.channel).Build())
	}
	for i, reply := range redis.DoMulti(ctx, asks...) {
		known[asked[i]] = hears(reply)
	}
	for i, w := range waiters {
		waiters[i].Hears = known[w.channel]
	}
	return ctx.Err()
}

func hears(reply rueidis.RedisResult) Hears {
	got, err := reply.ToArray()
	if err != nil || len(got) != 2 {
		return Unknown
	}
	switch n, err := got[1].AsInt64(); {
	case err != nil:
		return Unknown
	case n == 0:
		return Deaf
	}
	return Listening
}
