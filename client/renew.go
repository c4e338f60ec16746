package client

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// fly renews a batch. If all pipelines are under way the batch tries again a little later.
func (r *renewals) fly(batch []*held) {
	select {
	case r.slots <- struct{}{}:
	default:
		for _, h := range batch {
			h.retry(5 * time.Millisecond)
		}
		return
	}
	r.done.Add(1)
	go func() {
		defer r.done.Done()
		defer func() { <-r.slots }()
		r.send(batch)
	}()
}

// send is one pipeline. It waits a sixth of the shortest lease at most: what it did not hear of by then is asked again.
func (r *renewals) send(batch []*held) {
	c, limit := r.client, batch[0].set.lease
	commands, at := make(rueidis.Commands, 0, 2*len(batch)), make([]int, len(batch))
	for i, h := range batch {
		limit = min(limit, h.set.lease)
		if c.cache.watch(h) {
			commands = append(commands, c.caching(h.key))
		}
		at[i] = len(commands)
		commands = append(commands, r.command(h))
	}
	sent := time.Now()
	ctx, cancel := context.WithDeadline(r.ctx, sent.Add(limit/6))
	defer cancel()
	results := c.redis.DoMulti(ctx, commands...)
	var gone []*held
	for i, h := range batch {
		if at[i] > 0 && (i == 0 || at[i] > at[i-1]+1) {
			c.cached(ctx, results[at[i]-1])
		}
		values, err := results[at[i]].ToArray()
		if err != nil {
			err = classify(ctx, err)
		}
		if !r.settle(h.current(), sent, values, err) {
			gone = append(gone, h)
		}
	}
	if len(gone) > 0 {
		c.gone(r.ctx, gone...)
	}
}

// settle does what the answer to a renewal asks for. It returns false if the lock is not ours any more.
func (r *renewals) settle(h *held, sent time.Time, values []rueidis.RedisMessage, err error) (ours bool) {
	answer, err := decodeReply(values, err)
	switch {
	case err == nil && answer.yes:
		h.mu.Lock()
		if h.looking {
			h.looking, h.looked = false, sent
		} else {
			h.renewed++
		}
		h.mu.Unlock()
		h.extend(sent)
	case err == nil:
		return false
	default:
		if !errors.Is(err, context.Canceled) {
			r.client.log.Warn("holdfast: renewal failed, trying again until the lease ends", "lock", h.name, "error", err)
		}
		h.retry(h.set.lease / 20)
	}
	return true
}

// command renews h, and from its first renewal on leaves the channel on which a break is told: locks that are held only
// briefly pay nothing for it.
func (r *renewals) command(h *held) rueidis.Completed {
	ttl := h.set.ttl
	if channel := r.client.inbox.watch(h); channel != "" {
		return r.client.command(functions.Renew, h.key, h.owner, ttl, channel)
	}
	return r.client.command(functions.Renew, h.key, h.owner, ttl)
}

// retry asks for another renewal soon.
func (h *held) retry(pause time.Duration) {
	h.mu.Lock()
	h.busy = false
	h.renewAt = time.Now().Add(pause)
	h.mu.Unlock()
	h.client.renewals.update(h)
}
