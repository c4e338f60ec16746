package inbox

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// deliver hands a message to whom it is for: 'fence until_ms fence_block owner', 'broken fence
// owner_bytes owner reason', or our own 'echo id'.
func (in *Inbox) deliver(s *subscription, message string) {
	first, rest, _ := strings.Cut(message, " ")
	switch first {
	case "broken":
		if owner, fence, reason, ok := parseBroken(rest); ok {
			in.Broken(owner, fence, reason)
		}
	case "echo":
		in.echo(s, rest)
	default:
		if g, owner, ok := parseGrant(message); ok {
			in.grant(s, owner, g)
		}
	}
}

func parseGrant(message string) (g Grant, owner string, ok bool) {
	parts := strings.SplitN(message, " ", 4)
	if len(parts) != 4 {
		return g, "", false
	}
	var err [3]error
	g.Fence, err[0] = strconv.ParseInt(parts[0], 10, 64)
	g.UntilMS, err[1] = strconv.ParseInt(parts[1], 10, 64)
	g.Block, err[2] = strconv.ParseInt(parts[2], 10, 64)
	return g, parts[3], err == [3]error{} && g.Fence > 0 && g.Block > 0
}

func parseBroken(rest string) (owner string, fence int64, reason string, ok bool) {
	parts := strings.SplitN(rest, " ", 3)
	if len(parts) != 3 {
		return "", 0, "", false
	}
	fence, err1 := strconv.ParseInt(parts[0], 10, 64)
	n, err2 := strconv.Atoi(parts[1])
	text := parts[2]
	if err1 != nil || err2 != nil || n < 0 || n >= len(text) || text[n] != ' ' {
		return "", 0, "", false
	}
	return text[:n], fence, text[n+1:], true
}

func (in *Inbox) grant(s *subscription, owner string, g Grant) {
	in.mu.Lock()
	waiters := s.waiters[owner]
	for _, w := range waiters {
		select {
		case <-w.Grants: // an older one that was not taken
		default:
		}
		w.Grants <- g
	}
	in.mu.Unlock()
	if len(waiters) == 0 {
		in.Unclaimed(owner, g)
	}
}

// echoWait bounds the wait for an echo.
const echoWait = 250 * time.Millisecond

// CatchUp blocks until all that was published to the slots' channels before has been delivered:
// until an echo, a message of the inbox to itself, has come back on each. It gives up after 250 ms,
// and at once where nobody is subscribed. So the reason of a break, which was published before the
// server said that a lock is another's, has been told.
func (in *Inbox) CatchUp(ctx context.Context, slots []uint16) {
	asked, sends := map[*subscription]bool{}, map[rueidis.Client]*echoes{}
	in.mu.Lock()
	for _, slot := range slots {
		s := in.subs[slot]
		if s == nil || !s.ready || asked[s] {
			continue
		}
		redis := in.Redis(slot)
		if sends[redis] == nil {
			sends[redis] = &echoes{}
		}
		in.echoed++
		id, echo := strconv.FormatUint(in.echoed, 36), make(chan struct{})
		s.echoes[id], asked[s] = echo, true
		sends[redis].add(redis.B().Spublish().Channel(s.channel).Message("echo "+id).Build(), echo)
		defer in.forget(s, id)
	}
	in.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, echoWait)
	defer cancel()
	var done sync.WaitGroup
	for redis, e := range sends {
		done.Go(func() { e.await(ctx, redis) })
	}
	done.Wait()
}

// echoes are those that one client sends, and what they close when they are back.
type echoes struct {
	commands rueidis.Commands
	back     []chan struct{}
}

func (e *echoes) add(command rueidis.Completed, back chan struct{}) {
	e.commands, e.back = append(e.commands, command), append(e.back, back)
}

// await sends the echoes, and blocks until they are back or the context ends.
func (e *echoes) await(ctx context.Context, redis rueidis.Client) {
	sent := make(chan []rueidis.RedisResult, 1)
	go func() { sent <- redis.DoMulti(ctx, e.commands...) }()
	select {
	case results := <-sent:
		for i, result := range results {
			if heard, err := result.AsInt64(); err != nil || heard == 0 {
				continue
			}
			select {
			case <-e.back[i]:
			case <-ctx.Done():
			}
		}
	case <-ctx.Done():
	}
}

func (in *Inbox) forget(s *subscription, id string) {
	in.mu.Lock()
	delete(s.echoes, id)
	in.mu.Unlock()
}

// echo lets those go on who wait for it.
func (in *Inbox) echo(s *subscription, id string) {
	in.mu.Lock()
	if back := s.echoes[id]; back != nil {
		close(back)
		delete(s.echoes, id)
	}
	in.mu.Unlock()
}
