// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// Undo is what may be left at the server of an owner whose lock nobody here wants any more. It is
// sent until the server has answered, or nothing can be left.
type Undo struct {
	Key, Owner, Hold string
	// Somebody worked under it: a release, which keeps a minimum. Else a withdrawal, which does not.
	Worked bool
	Final  *fcall.Done // Worked: what it is finished with; nil: it is released
	Token  int64       // Worked: the last token used of a run; else the only grant that is meant; 0: any
	Again  bool        // a call of the owner may run late: it is undone again, up to half a minute
	Until  time.Time   // nothing can be left after this
	After  *Ride       // of the owner, without an answer: it is undone behind that. Its Answered has not begun
	// Done, if not nil, gets what the server said first, or why nobody asks any more. It has room for one.
	Done chan fcall.Outcome

	// The keeper's mutex guards these, once it has the Undo.
	place int
	at    time.Time // of the next try; the zero time: it is done
	pause time.Duration
	round int // of again
	over  bool
	// a try has no answer: if a later one says that nothing is ours, that one was done
	unknown bool
}

// Undo begins at once, or behind After. After Close the lease ends what is left.
func (k *Keeper) Undo(u *Undo) {
	now := time.Now()
	if u.place = -1; u.After != nil {
		u.After.undo, u.at = u, now.Add(overWait)
	} else if u.at.IsZero() {
		u.at = now.Add(u.pause)
	}
	u.over = u.Until.Before(now) // prolonged, perhaps, by what this process does not know of: once
	if !k.add(u, u.at, true) && u.Done != nil {
		u.Done <- fcall.Outcome{Err: k.Closed}
	}
}

// Returns reports whether a lock of an owner is being given back that somebody worked under.
func (k *Keeper) Returns(key, owner string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.queue, func(x dueItem) bool {
		u, ok := x.timed.(*Undo)
		return ok && u.Worked && u.Key == key && u.Owner == owner
	})
}

// Timer is of the keeper.
func (u *Undo) Timer() *int { return &u.place }

// Due is when to try it next.
func (u *Undo) Due() time.Time { return u.at }

// tries reports whether to send it now.
func (k *Keeper) tries(u *Undo, now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if u.at.IsZero() || now.Before(u.at) {
		return false
	}
	u.at = now.Add(time.Hour) // under way: its pipeline ends before
	return true
}

func (u *Undo) call() fcall.Call {
	c := fcall.Call{Verb: fcall.Leave, Key: u.Key, Owner: u.Owner, Hold: u.Hold, Fence: u.Token}
	if u.Final != nil {
		c.Verb, c.Value, c.Keep = fcall.Finish, u.Final.Value, max(time.Millisecond, time.Until(u.Final.Since.Add(u.Final.Keep)))
	} else if u.Worked {
		c.Verb = fcall.Release
	}
	return c
}

// tried plans the next try, if there is one.
func (k *Keeper) tried(u *Undo, o fcall.Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	u.over = u.over || k.undone != nil // when the client closes, the next try is the last one
	u.unknown = u.unknown || o.Err != nil && fcall.Unknown(o.Err)
	u.finished(o.Err)
	u.Again = u.Again || u.Worked && o.Err == nil && !o.Yes // another server may have it
	switch {
	case (o.Err != nil || o.Spent) && now.Before(u.Until) && !u.over:
		u.pause = min(max(2*u.pause, firstPause), lastPause)
		u.at = now.Add(u.pause)
	case o.Err == nil && u.Again && u.round < len(again) && !u.over:
		u.at, u.pause = now.Add(again[u.round]), 0
		u.round++
	default:
		u.at = time.Time{}
	}
	if u.at.IsZero() || o.Err == nil {
		u.tell(o)
	}
	k.update(u, u.at)
}

// finished is for an answer: what may follow is no Finish any more. That of a server that does not work
// now is none.
func (u *Undo) finished(err error) {
	if u.Final != nil && (err == nil || fcall.Full(err) || errors.Is(err, fcall.ErrInvalid) && !fcall.Unknown(err)) {
		u.Final = nil
	}
}

// tell says once what came of it, or that nobody asks any more.
func (u *Undo) tell(o fcall.Outcome) {
	if u.Done != nil {
		o.Yes = o.Yes || o.Err == nil && u.unknown
		u.Done <- o
		u.Done = nil
	}
}
