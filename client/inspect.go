package client

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/redis/rueidis"
)

// Info is how a lock stood when the server was asked.
type Info struct {
	Name      string
	Held      bool
	Holder    Holder        // zero when free
	Holds     int           // of a reentrant holder; 1 otherwise
	Fence     int64         // 0 for a plain string set by another service
	Remaining time.Duration // of the lease; negative: it has none
	Waiters   int
	Age       time.Duration // 0 from Inspect; how old a cached answer is
}

// Inspect asks the server how the lock stands. It changes nothing and blocks for one round trip.
//
// Errors: as TryAcquire, ErrBusy excepted.
func (c *Client) Inspect(ctx context.Context, name string) (Info, error) {
	key, err := c.key(name)
	if err != nil {
		return Info{}, opError("inspect", name, err)
	}
	return c.decodeInfo(name, key)(c.do(ctx, functions.Inspect, key))
}

// InspectCached is Inspect from memory, without a round trip, while the server has not said that the lock changed; Age
// tells how long ago it was asked. Without client-side caching (see Open) it is Inspect.
//
// Errors: as Inspect.
func (c *Client) InspectCached(ctx context.Context, name string) (Info, error) {
	key, err := c.key(name)
	if err != nil {
		return Info{}, opError("inspect", name, err)
	}
	if !c.cache.on.Load() {
		return c.Inspect(ctx, name)
	}
	cached, question := c.cache.info(key)
	if cached != nil {
		return *cached, nil
	}
	sent := time.Now()
	info, err := c.decodeInfo(name, key)(c.ask(ctx, functions.Inspect, key))
	if err != nil {
		return Info{}, err
	}
	lease := info.Remaining
	if !info.Held {
		lease = time.Minute
	}
	c.cache.keep(question, nil, &info, sent, lease)
	return info, nil
}

// decodeInfo reads 'held, owner, holds, fence, pttl_ms, waiters'.
func (c *Client) decodeInfo(name, key string) func([]rueidis.RedisMessage, error) (Info, error) {
	return func(values []rueidis.RedisMessage, err error) (Info, error) {
		d := decoder{values: values, err: err}
		if err != nil {
			return Info{}, opError("inspect", name, err)
		}
		info := Info{Name: name, Held: d.integer(0) == 1, Holds: int(d.integer(2)), Fence: d.integer(3),
			Remaining: time.Duration(d.integer(4)) * time.Millisecond, Waiters: int(d.integer(5))}
		if owner := d.text(1); info.Held {
			info.Holder = parseHolder(owner, info.Fence)
		}
		if d.err != nil {
			return Info{}, opError("inspect", name, d.err)
		}
		if h := c.rooms.holder(key); h != nil && h.owner == info.Holder.Owner { // passed on within this process, unknown to the server
			info.Fence, info.Holder.Since = h.fence, time.UnixMicro(h.fence)
		}
		return info, nil
	}
}

// Break takes the lock from whoever has it, and gives it to the next in line. The holder's context ends with ErrBroken
// and the reason: at once if it can be told (it waited for the lock, or has renewed it), else as ErrTaken at its next
// renewal. reason gets this process's name in front, and is cut to fit. It returns how the lock stood, Held false if there was
// nothing to break.
//
// It is for operators: the holder's work may still be running when the next holder starts. Fencing tokens are the
// protection against that. Errors: as Inspect. After ErrUnreachable it may have been done; a repeat would break the next holder's lock.
func (c *Client) Break(ctx context.Context, name, reason string) (Info, error) {
	key, err := c.key(name)
	if err != nil {
		return Info{}, opError("break", name, err)
	}
	host, _ := os.Hostname()
	reason = fmt.Sprintf("%s pid %d: %s", host, os.Getpid(), reason)
	values, err := c.call(ctx, functions.Break, key, reason[:min(len(reason), functions.MaxBytes)])
	if err != nil {
		return Info{}, opError("break", name, err)
	}
	d := decoder{values: values}
	info := Info{Name: name, Held: d.integer(0) == 1, Fence: d.integer(2)}
	if owner := d.text(1); info.Held {
		info.Holder = parseHolder(owner, info.Fence)
	}
	if d.err != nil {
		return Info{}, opError("break", name, d.err)
	}
	return info, nil
}

// Version asks the server for the version of its functions library.
//
// Errors: ErrLibrary when it is missing, and as Inspect.
func (c *Client) Version(ctx context.Context) (string, error) {
	version, err := c.redis.Do(ctx, c.redis.B().Fcall().Function(functions.ReadVersion).Numkeys(0).Build()).ToString()
	if err != nil {
		return "", fmt.Errorf("holdfast: version: %w", classify(ctx, err))
	}
	return version, nil
}
