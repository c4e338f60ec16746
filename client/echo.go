package client

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// echoWait bounds the wait for an echo: what the server says is not ours must not be worked under for longer.
const echoWait = 250 * time.Millisecond

// gone ends locks that the server says are not ours. If one was broken, the news of that and its reason was published
// before the server said so, but it comes through another goroutine, perhaps another connection: it is waited for.
func (c *Client) gone(ctx context.Context, locks ...*held) {
	c.inbox.catchUp(ctx, locks)
	for _, h := range locks {
		_ = h.current().lose(ErrTaken, "")
	}
}

// gone ends h, that the server says is not ours, and returns why.
func (h *held) gone(ctx context.Context) error {
	h.client.gone(ctx, h)
	return h.lose(ErrTaken, "")
}

// catchUp blocks until all that was published to the channels of those locks has been delivered: until an echo, a message
// of the inbox to itself, has come back on each. It gives up after echoWait, and at once where nobody is subscribed.
func (in *inbox) catchUp(ctx context.Context, locks []*held) {
	echoes := map[*subscription]chan struct{}{}
	commands, back := rueidis.Commands{}, []chan struct{}{}
	in.mu.Lock()
	for _, h := range locks {
		s := in.subs[in.client.slot(h.key)]
		if s == nil || in.holders[h.owner] == nil || echoes[s] != nil {
			continue
		}
		in.echoed++
		id, echo := strconv.FormatUint(in.echoed, 36), make(chan struct{})
		s.echoes[id], echoes[s] = echo, echo
		back = append(back, echo)
		commands = append(commands, in.client.redis.B().Spublish().Channel(s.channel).Message("echo "+id+" ").Build())
		defer in.forgetEcho(s, id)
	}
	in.mu.Unlock()
	if len(commands) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, echoWait)
	defer cancel()
	for i, result := range in.client.redis.DoMulti(ctx, commands...) {
		if heard, err := result.AsInt64(); err != nil || heard == 0 {
			continue
		}
		select {
		case <-back[i]:
		case <-ctx.Done():
		}
	}
}

func (in *inbox) forgetEcho(s *subscription, id string) {
	in.mu.Lock()
	delete(s.echoes, id)
	in.mu.Unlock()
}

// echo lets go who waits for it.
func (in *inbox) echo(s *subscription, id string) {
	in.mu.Lock()
	if back := s.echoes[id]; back != nil {
		close(back)
		delete(s.echoes, id)
	}
	in.mu.Unlock()
}
