// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
)

// Lock is how a lock stood, as JSON too.
type Lock struct {
	Name    string `json:"name"`
	Held    bool   `json:"held"`
	Who            // of the holder, or whom it is kept for; nobody if several have it
	Kind    string `json:"kind,omitempty"`    // "limited" or "shared": several have it
	Holders []Lock `json:"holders,omitempty"` // they, where it was asked for: each as it has the lock
	Slot    int    `json:"slot,omitempty"`    // of one of several
	// when its holder got it (of several the first), by the server's clock; nil if nobody knows
	Since       *time.Time `json:"since,omitempty"`
	HeldMS      int64      `json:"held_ms"`
	RemainingMS int64      `json:"remaining_ms"` // of the lease; -1: it has none
	Token       int64      `json:"token"`        // 0: it has none; of several the highest
	Holds       int        `json:"holds"`
	Waiters     int        `json:"waiters"`
	// until when nobody else gets it, held or not: a minimum (MinHold, Once), or a value
	KeptUntil *time.Time `json:"kept_until,omitempty"`
	HasValue  bool       `json:"has_value,omitempty"` // with which it is kept (OnceValue); nobody is shown it
	Broken    *Record    `json:"broken,omitempty"`    // while the key remembers it
	ends      time.Time  // the lease, by the server's clock; not later than it is
}

// String is short, for people.
func (l Lock) String() string {
	switch {
	case l.Kind == "":
		return l.Who.String()
	case l.Holds == 1:
		return "1 holder (" + l.Kind + ")"
	}
	return fmt.Sprintf("%d holders (%s)", l.Holds, l.Kind)
}

// Of is the lock as that owner has it, "" as all have. ok is false if the owner has not.
func (l Lock) Of(owner string) (_ Lock, ok bool) {
	for _, h := range l.Holders {
		if h.Held && h.Owner == owner {
			return h, true
		}
	}
	return l, owner == "" || owner == l.Owner
}

// Record is what the key of a lock remembers of its last break.
type Record struct {
	Who              // who lost it
	Token  int64     `json:"token"`
	Reason string    `json:"reason"`
	Until  time.Time `json:"until"`
}

// String is who lost it, for people.
func (r Record) String() string {
	if r.Who == (Who{}) {
		return "all who had it"
	}
	return r.Who.String()
}

// Kept reports whether nobody has the lock, and nobody gets it yet.
func (l Lock) Kept() bool { return !l.Held && l.KeptUntil != nil }

// Who is what an owner string tells. All but Owner may be missing.
type Who struct {
	Owner string `json:"owner,omitempty"`
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Label string `json:"label,omitempty"`
}

// String is short, for people, with nothing in it that cannot be printed.
func (w Who) String() string {
	if w == (Who{}) {
		return "-"
	}
	return client.Holder{Owner: w.Owner, Host: w.Host, PID: w.PID, Label: w.Label}.String()
}

func who(h client.Holder) Who { return Who{Owner: h.Owner, Host: h.Host, PID: h.PID, Label: h.Label} }

// HeldFor is how long its holder has had it.
func (l Lock) HeldFor() time.Duration { return time.Duration(l.HeldMS) * time.Millisecond }

// begin is a number for Since: the greatest one if nobody has it, or nobody knows since when.
func (l Lock) begin() int64 {
	if l.Since == nil {
		return math.MaxInt64
	}
	return l.Since.UnixMicro()
}

// Remaining is what is left of the lease, negative if it has none.
func (l Lock) Remaining() time.Duration { return time.Duration(l.RemainingMS) * time.Millisecond }

// lockOf is a lock as it stood not before that time of the server's clock.
func lockOf(info client.Info, now time.Time) Lock {
	l := Lock{Name: info.Name, Held: info.Held, Who: who(info.Holder), Token: info.Fence, Holds: info.Holds,
		Waiters: info.Waiters, RemainingMS: info.Remaining.Milliseconds(), ends: now.Add(info.Remaining)}
	if info.Remaining < 0 {
		l.RemainingMS = -1
	}
	if info.Why == functions.WhyLimited || info.Why == functions.WhyShared {
		l.Kind = info.Why
	} else if info.Held && info.Fence > 0 {
		since := info.Holder.Since.UTC()
		l.Since, l.HeldMS = &since, max(0, now.Sub(since).Milliseconds())
	}
	if info.Why == functions.WhyKept {
		until := now.Truncate(time.Millisecond).Add(info.Remaining).UTC()
		l.KeptUntil = &until
	}
	return l
}

// ask lists several that have a lock. On a quorum nobody can, and one alone has it.
func (v *View) ask(ctx context.Context, l *Lock, now time.Time) error {
	if l.Kind == "" || v.need > 1 {
		return nil
	}
	all, err := v.Client.Holders(ctx, l.Name)
	for _, h := range all {
		one := lockOf(client.Info{Name: l.Name, Held: h.Holder.Owner != "", Holder: h.Holder, Holds: 1, Fence: h.Fence,
			Remaining: h.Remaining, Waiters: l.Waiters}, now)
		one.Slot = h.Slot
		l.Holders = append(l.Holders, one)
		if one.begin() < l.begin() {
			l.Since, l.HeldMS = one.Since, one.HeldMS
		}
	}
	return err
}

// Lock looks at one lock.
func (v *View) Lock(ctx context.Context, name string) (Lock, error) {
	now := v.Now(ctx) // not later than the answer: what the key says of a minimum is more exact then
	info, err := v.Client.Inspect(ctx, name)
	if err != nil {
		return Lock{}, err
	}
	lock := lockOf(info, now)
	v.remember(ctx, &lock, now)
	return lock, v.ask(ctx, &lock, now)
}

// Broken is what a break did.
type Broken struct {
	Lost *Lock // who had it; nil: nobody, or somebody else by now
	Next *Lock // how the lock stood right after it
}

// Break takes the lock from the owner that it was seen with, and from nobody else, so a repeat is
// safe. Of several, all lose it who have it then. Of these, and of an owner that no call can name, as a
// plain string's, only a look right before it says that nobody else has it. The key remembers the break
// and its reason; with forget it does not, and loses an older record too. Next is nil if the look
// afterwards fails.
func (v *View) Break(ctx context.Context, seen Lock, reason string, forget bool) (Broken, error) {
	var words []string
	owner := seen.Owner
	if !seen.Held && !seen.Kept() && seen.Broken != nil {
		owner = seen.Broken.Owner // the record of whose loss is to be dropped
	}
	if nameable(owner) {
		words = append(words, functions.OptOwner, owner)
	} else if now, err := v.Lock(ctx, seen.Name); err != nil {
		return Broken{}, err
	} else if now.Held != seen.Held || now.Kind != seen.Kind || now.Owner != seen.Owner {
		return Broken{Next: &now}, nil
	}
	if forget {
		words = append(words, functions.OptForget)
	} else {
		words = append(words, functions.OptReason, signed(reason))
	}
	var b Broken
	var failed []error
	servers := v.servers()
	for _, redis := range servers {
		fcall := redis.B().Fcall().Function(functions.Break).Numkeys(1).Key(v.Key(seen.Name)).Arg(words...).Build()
		reply, err := redis.Do(ctx, fcall).ToArray()
		if err != nil {
			failed = append(failed, fmt.Errorf("break %q: %w", seen.Name, err))
		} else if n, err := reply[0].AsInt64(); err == nil && n != 0 {
			b.Lost = &seen
		}
	}
	if len(servers)-len(failed) < v.need {
		return Broken{}, errors.Join(failed...)
	}
	if next, err := v.Lock(ctx, seen.Name); err == nil {
		b.Next = &next
	}
	return b, nil
}

// signed says who gives the reason, in a text that a call takes.
func signed(reason string) string {
	host, _ := os.Hostname()
	text := strings.Map(func(r rune) rune {
		if control(r) {
			return ' '
		}
		return r
	}, fmt.Sprintf("%s pid %d: %s", host, os.Getpid(), reason))
	return strings.ToValidUTF8(text[:min(len(text), functions.MaxBytes)], "") // no part of a character
}
