package main

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/integration/oracle"
)

// look is a holder's view of its lock. The holder asks again and again whether it is live, and
// tells when that is seen first and last. What was asked between two stamps was so at a moment
// between them, however long the process stood still there.
type look struct {
	*worker
	id    int64
	lock  string
	level oracle.Level
	owner string
	token int64
	start stamp // of the call that got it
	live  func() bool

	entered bool
	last    stamp // before the last look that found it live
	over    stamp // after the first that did not
	told    stamp
}

// often is how often a holder tells that its lock is live: if it is killed, no more is known.
const often = 20 * time.Millisecond

// see looks. It returns false when the lock is over.
func (l *look) see() bool {
	if l.over != 0 {
		return false
	}
	before := now()
	live := l.live()
	after := now()
	if !live {
		l.over = after
		return false
	}
	l.last = before
	switch {
	case !l.entered:
		l.entered, l.told = true, after
		l.say(message{What: sayEnter, ID: l.id, Worker: l.number, At: after, Last: before,
			Lock: l.lock, Level: l.level, Owner: l.owner,
			Token: l.token, Start: l.start})
	case after.Sub(l.told) > often:
		l.told = after
		l.say(message{What: sayLive, ID: l.id, Last: before})
	}
	return true
}

// leave ends the view: the lock is over from a moment on that is not later than at.
func (l *look) leave(at stamp, why string) {
	if l.over != 0 {
		at, why = l.over, "it was found lost; "+why
	}
	if l.entered {
		l.say(message{What: sayLeave, ID: l.id, At: at, Last: l.last, Outcome: why})
	}
}

// stay looks for a while. It returns early when the lock is over.
func (l *look) stay(d time.Duration) bool {
	tick := time.NewTicker(min(max(d/4, time.Millisecond), 5*time.Millisecond))
	defer tick.Stop()
	end := time.After(d)
	for l.see() {
		select {
		case <-tick.C:
		case <-end:
			return l.see()
		case <-l.stopping.Done():
			return l.see()
		}
	}
	return false
}

// deposit adds one to the guarded register, as a careless holder does: it does not look whether the
// lock is still its own.
func (l *look) deposit(pause time.Duration) {
	value, ok := l.register.read(l.lock, l.token)
	if !ok {
		return
	}
	l.stay(pause)
	l.register.write(l.lock, l.token, value+1)
}

func (l *look) trouble(rule, form string, args ...any) {
	l.say(message{What: sayTrouble, Call: rule, Lock: l.lock, At: now(),
		Outcome: fmt.Sprintf(form, args...)})
}
