package locks

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// Lock is how a lock stood, as JSON too.
type Lock struct {
	Name string `json:"name"`
	Held bool   `json:"held"`
	Who         // of the holder
	// when its holder got it, by the server's clock; nil of a plain string of another service
	Since       *time.Time `json:"since,omitempty"`
	HeldMS      int64      `json:"held_ms"`
	RemainingMS int64      `json:"remaining_ms"` // of the lease; -1: it has none
	Token       int64      `json:"token"`        // 0: it has none
	Holds       int        `json:"holds"`
	Waiters     int        `json:"waiters"`
}

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

// Remaining is what is left of the lease, negative if it has none.
func (l Lock) Remaining() time.Duration { return time.Duration(l.RemainingMS) * time.Millisecond }

// lockOf is a lock as it stood at that time of the server's clock.
func lockOf(info client.Info, now time.Time) Lock {
	l := Lock{Name: info.Name, Held: info.Held, Who: who(info.Holder), Token: info.Fence, Holds: info.Holds,
		Waiters: info.Waiters, RemainingMS: info.Remaining.Milliseconds()}
	if info.Remaining < 0 {
		l.RemainingMS = -1
	}
	if info.Held && info.Fence > 0 {
		since := info.Holder.Since.UTC()
		l.Since, l.HeldMS = &since, max(0, now.Sub(since).Milliseconds())
	}
	return l
}

// Lock looks at one lock.
func (v *View) Lock(ctx context.Context, name string) (Lock, error) {
	info, err := v.Client.Inspect(ctx, name)
	if err != nil {
		return Lock{}, err
	}
	return lockOf(info, v.Now(ctx)), nil
}

// Broken is what a break did.
type Broken struct {
	Lost *Lock // who had it; nil: nobody
	Next *Lock // how the lock stood right after it
}

// Break takes the lock from its holder. Next is nil if the look afterwards fails.
func (v *View) Break(ctx context.Context, name, reason string) (Broken, error) {
	info, err := v.Client.Break(ctx, name, reason)
	if err != nil {
		return Broken{}, err
	}
	var b Broken
	if info.Held {
		lost := lockOf(info, v.Now(ctx))
		b.Lost = &lost
	}
	if next, err := v.Lock(ctx, name); err == nil {
		b.Next = &next
	}
	return b, nil
}
