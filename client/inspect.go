// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
	"github.com/holdfast-go/holdfast/functions"
)

// Info is how a lock stood when the server was asked.
type Info struct {
	Name   string
	Held   bool   // also a limited or shared lock that MinHold alone keeps: Holders says so
	Holder Holder // zero when free, and when several have it: see Holders; who had it, while it is kept
	// on the server: several of an owner that several processes share, and how many slots of a limited or
	// shared lock are taken, those that MinHold keeps among them; re-entry is not counted there
	Holds int
	// the highest so far, if several have it. 0 for a plain string set by another service; of several
	// servers it can be above the holder's token, when some of them were replaced meanwhile, or are late
	Fence     int64
	Remaining time.Duration // of the lease; negative: it has none. If several have it, the first ends no earlier
	Waiters   int           // places in line; goroutines of one process share one, and have none while it has the lock
	Age       time.Duration // 0 from Inspect; how old a cached answer is
	// Why others do not get the lock, in a word of functions/README.md: "held"; "limited" or "shared",
	// several have it; "kept", nobody works under it, and MinHold keeps it for Remaining, Holder had
	// it; "free"; ...
	Why string
}

// Inspect asks the server how the lock stands. It changes nothing and blocks for one round trip. Of
// several servers, whoever may have the lock has it: one that does not answer may be of its majority.
//
// Errors: as TryAcquire, ErrBusy excepted.
func (c *Client) Inspect(ctx context.Context, name string) (Info, error) {
	return c.inspect(ctx, name, false)
}

// InspectCached is Inspect from memory, without a round trip, while the server has not said that
// the lock changed; Age tells how long ago it was asked. Without client-side caching (see Open) it
// is Inspect.
//
// Errors: as Inspect.
func (c *Client) InspectCached(ctx context.Context, name string) (Info, error) {
	return c.inspect(ctx, name, c.cache.On())
}

func (c *Client) inspect(ctx context.Context, name string, cached bool) (Info, error) {
	key, err := c.question(ctx, name)
	if err != nil {
		return Info{}, opError("inspect", name, err)
	}
	var question *tracking.Question
	if cached {
		value, age, _ := c.cache.Answer(key, tracking.State)
		if value != nil {
			info := *value.(*Info)
			info.Age = age
			if info.Remaining > 0 {
				info.Remaining = max(0, info.Remaining-age)
			}
			return info, nil
		}
		question = c.cache.Notice(key)
	}
	sent := time.Now()
	r, err := c.backend.Do(ctx, fcall.Call{Verb: fcall.Inspect, Key: key, Tracked: cached})
	if err != nil {
		return Info{}, opError("inspect", name, c.ended(ctx, err))
	}
	info := Info{Name: name, Held: r.Yes || r.Why == functions.WhyForeign, Holds: int(r.Holds), Fence: r.Fence,
		Holder: parseHolder(r.Holder, r.Fence), Remaining: r.Remaining, Waiters: int(r.Waiters), Why: r.Why}
	// passed on within this process, unknown to the server
	if t, _, _ := c.queues.Line(key); t != nil && t.Owner == r.Holder {
		info.Fence, info.Holder.Since = t.Fence, time.UnixMicro(t.Fence)
	}
	lifetime := info.Remaining
	if info.Remaining <= 0 {
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

// HolderInfo is one of those who have a lock.
type HolderInfo struct {
	Slot      int    // as Lock.Slot; 1 of one who has it alone
	Holder    Holder // zero: nobody, MinHold keeps the slot for Remaining
	Fence     int64
	Remaining time.Duration // as Info's
}

// Holders asks the server who has the lock, and returns all, by their slots: of a limited or shared
// lock several. It is a round trip for each hundred slots, and each page is as it stood when it was
// asked for.
//
// Errors: as Inspect, and ErrArgument on several servers, where one alone has a lock: Inspect says who.
func (c *Client) Holders(ctx context.Context, name string) ([]HolderInfo, error) {
	key, err := c.question(ctx, name)
	if err == nil && c.backend.Voting() {
		err = fmt.Errorf("%w: Holders is not possible on several servers: use Inspect", ErrArgument)
	}
	if err != nil {
		return nil, opError("holders", name, err)
	}
	var all []HolderInfo
	for from := int64(1); from > 0; {
		r, err := c.backend.Do(ctx, fcall.Call{Verb: fcall.Holders, Key: key, From: from})
		if err != nil {
			return nil, opError("holders", name, c.ended(ctx, err))
		}
		for _, h := range r.Page.Holders {
			all = append(all, HolderInfo{int(h.Slot), parseHolder(h.Owner, h.Fence), h.Fence, h.Remaining})
		}
		from = r.Page.Next
	}
	return all, nil
}

// Break takes the lock from its holder, from all if there are several, and gives it to the next in line, if
// there is a line. The holder's context ends with ErrBroken and the reason: at once if it can be
// notified (it waited for the lock, has held it alone for a second with client-side caching, or is of this
// client), else at its next renewal, or with ErrTaken if another break came before that. A lock that is kept
// by MinHold is free then. reason gets this process's name in front, and is cut to fit. It returns how the
// lock stood, Held false if there was nothing to break.
//
// It is for operators: the holder's work may still be running when the next holder starts. Fencing
// tokens are the protection against that. Errors: as Inspect. After ErrUnreachable it may have been
// done; a repeat would break the next holder's lock.
func (c *Client) Break(ctx context.Context, name, reason string) (Info, error) {
	return c.takeAway(ctx, name, "", reason)
}

// BreakOwner is Break of that owner's lock only, whose string Inspect, Holders and BusyError say: others that
// have it too keep it, and a repeat breaks no later holder's.
//
// Errors: as Break, and ErrArgument without an owner.
func (c *Client) BreakOwner(ctx context.Context, name, owner, reason string) (Info, error) {
	if owner == "" {
		return Info{}, opError("break", name, fmt.Errorf("%w: Owner must not be empty", ErrArgument))
	}
	return c.takeAway(ctx, name, owner, reason)
}

func (c *Client) takeAway(ctx context.Context, name, owner, reason string) (Info, error) {
	key, err := c.question(ctx, name)
	if err != nil {
		return Info{}, opError("break", name, err)
	}
	host, _ := os.Hostname()
	reason = printable(fmt.Sprintf("%s pid %d: %s", host, os.Getpid(), reason))
	reason = strings.ToValidUTF8(reason[:min(len(reason), functions.MaxBytes)], "") // cut between two runes
	r, err := c.backend.Do(ctx, fcall.Call{Verb: fcall.Break, Key: key, Owner: owner, Reason: reason})
	for _, h := range c.keeper.Owned(key, owner) { // what this client changed itself, tracking does not tell it
		c.keeper.Notice(h)
	}
	if err != nil {
		return Info{}, opError("break", name, c.ended(ctx, err))
	}
	info := Info{Name: name, Held: r.Yes}
	if info.Held {
		info.Fence, info.Holder = r.Fence, parseHolder(r.Holder, r.Fence)
	}
	return info, nil
}
