package client

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
	"github.com/holdfast-go/holdfast/functions"
)

// Info is how a lock stood when the server was asked.
type Info struct {
	Name   string
	Held   bool
	Holder Holder // zero when free
	// on the server: several only of an owner that several processes share; re-entry is not counted
	// there
	Holds int
	// 0 for a plain string set by another service; of several servers it can be above the holder's token,
	// when some of them were replaced meanwhile
	Fence     int64
	Remaining time.Duration // of the lease; negative: it has none
	Waiters   int           // places in line; goroutines of one process share one
	Age       time.Duration // 0 from Inspect; how old a cached answer is
}

// Inspect asks the server how the lock stands. It changes nothing and blocks for one round trip. Of
// several servers, whoever may have the lock has it: one that does not answer may be of its majority.
//
// Errors: as TryAcquire, ErrBusy excepted.
func (c *Client) Inspect(ctx context.Context, name string) (Info, error) {
	key, err := c.question(ctx, name)
	if err != nil {
		return Info{}, opError("inspect", name, err)
	}
	s, err := c.calls.Inspect(ctx, key)
	if err != nil {
		return Info{}, opError("inspect", name, c.ended(ctx, err))
	}
	return c.info(name, key, s), nil
}

// InspectCached is Inspect from memory, without a round trip, while the server has not said that
// the lock changed; Age tells how long ago it was asked. Without client-side caching (see Open) it
// is Inspect.
//
// Errors: as Inspect.
func (c *Client) InspectCached(ctx context.Context, name string) (Info, error) {
	if !c.cache.On() {
		return c.Inspect(ctx, name)
	}
	key, err := c.question(ctx, name)
	if err != nil {
		return Info{}, opError("inspect", name, err)
	}
	value, age, question := c.cache.Answer(key, tracking.State)
	if value != nil {
		info := *value.(*Info)
		info.Age = age
		if info.Remaining > 0 {
			info.Remaining = max(0, info.Remaining-age)
		}
		return info, nil
	}
	if !question.Tracked() {
		question = c.cache.Notice(key)
	}
	sent := time.Now()
	s, err := c.calls.InspectTracked(ctx, key)
	if err != nil {
		return Info{}, opError("inspect", name, c.ended(ctx, err))
	}
	info := c.info(name, key, s)
	lifetime := info.Remaining
	if !info.Held || info.Remaining < 0 {
		lifetime = time.Minute
	}
	c.cache.Keep(question, tracking.State, &info, sent, lifetime)
	return info, nil
}

// question is the key of a lock that a call is about; it fails if the call's context is over.
func (c *Client) question(ctx context.Context, name string) (key string, err error) {
	if key, err = c.key(name); err == nil {
		err = begun(ctx)
	}
	return key, err
}

func (c *Client) info(name, key string, s fcall.Standing) Info {
	info := Info{Name: name, Held: s.Held, Holds: int(s.Holds), Fence: s.Fence, Remaining: s.Remaining, Waiters: int(s.Waiters)}
	if info.Held {
		info.Holder = parseHolder(s.Owner, s.Fence)
	}
	// passed on within this process, unknown to the server
	if h, _, _ := c.lines.Find(key); h != nil && h.owner == s.Owner {
		info.Fence, _ = h.stands()
		info.Holder.Since = time.UnixMicro(info.Fence)
	}
	return info
}

// Break takes the lock from its holder, and gives it to the next in line. The holder's context ends
// with ErrBroken and the reason: at once if it can be told (it waited for the lock, or has held it
// for a second and renews it), else as ErrTaken at its next renewal or look. Those who wait behind
// it in its process hear as late. reason gets this process's name in front, and is cut to fit. It
// returns how the lock stood, Held false if there was nothing to break.
//
// It is for operators: the holder's work may still be running when the next holder starts. Fencing
// tokens are the protection against that. Errors: as Inspect. After ErrUnreachable it may have been
// done; a repeat would break the next holder's lock.
func (c *Client) Break(ctx context.Context, name, reason string) (Info, error) {
	key, err := c.question(ctx, name)
	if err != nil {
		return Info{}, opError("break", name, err)
	}
	host, _ := os.Hostname()
	reason = printable(fmt.Sprintf("%s pid %d: %s", host, os.Getpid(), reason))
	s, err := c.calls.Break(ctx, key, reason[:min(len(reason), functions.MaxBytes)])
	if err != nil {
		return Info{}, opError("break", name, c.ended(ctx, err))
	}
	info := Info{Name: name, Held: s.Held, Fence: s.Fence}
	if info.Held {
		info.Holder = parseHolder(s.Owner, s.Fence)
	}
	return info, nil
}

// Version asks the server for the version of its functions library.
//
// Errors: ErrLibrary when it is missing, and as Inspect.
func (c *Client) Version(ctx context.Context) (string, error) {
	if err := begun(ctx); err != nil {
		return "", fmt.Errorf("holdfast: version: %w", err)
	}
	version, err := c.calls.Version(ctx)
	if err != nil {
		return "", fmt.Errorf("holdfast: version: %w", c.ended(ctx, err))
	}
	return version, nil
}
