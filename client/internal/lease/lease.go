// Package lease is the life of one lease as its holder sees it: a state machine without goroutines,
// clocks or servers. Time goes in, and what is due comes out. It knows nothing of exclusion, of
// hash slots or of FCALL.
//
// A Lease is not safe for concurrent use: its owner guards it with one mutex.
package lease

import "time"

// Terms are what a lease was asked for with.
type Terms struct {
	Length      time.Duration // how long the server keeps it after each renewal
	RenewEvery  time.Duration // from one renewal to the next; 0: it is never renewed
	MaxRenewals int           // the work is ended when one more would be due; 0: no limit
	MaxHold     time.Duration // the work is ended after this; 0: no limit
	Grace       time.Duration // from the end of the work to the giving back
}

// Action is what a Lease needs done. Its owner does it, and reports with Renewed, Looked, GaveBack,
// Denied, Refused or Failed.
type Action uint8

// The actions.
const (
	None            Action = iota
	Renew                  // send a renewal
	Look                   // ask who has the lock: its key has changed
	GiveBack               // tell the server that the lock is not wanted any more
	Expire                 // the lease is over by this process's clock: end the work
	StopMaxHold            // the work has lasted for MaxHold: end it
	StopMaxRenewals        // MaxRenewals are used up: end the work
)

const (
	// a lock that is held for longer is made known to the server's tracking
	introduceAfter = time.Second
	// between two looks: waiters that join change the key too
	lookPause    = 100 * time.Millisecond
	slowestRetry = 10 * time.Second
	// the first pause after a server said that it knows nothing of a lease; each next one is three
	// times as long. A Cluster tells a deposed primary within some 100 ms, Sentinel within seconds.
	deniedPause = 250 * time.Millisecond
)

// Margin is subtracted from the local lease. It allows for clocks that run at different speeds, and
// for the time between the check of a deadline and its effect. A hundredth and 2 ms are the figures
// of the Redlock algorithm (https://redis.io/docs/latest/develop/use/patterns/distributed-locks/).
func Margin(length time.Duration) time.Duration { return length/100 + 2*time.Millisecond }

// Deadline is the local end of a lease that was asked for at sent: before the server's end,
// whenever the server ran the request.
func Deadline(sent time.Time, length time.Duration) time.Time {
	return sent.Add(length - Margin(length))
}

// Kept is the length of a lease that the server keeps for at least d, by a clock that may run faster.
func Kept(d time.Duration) time.Duration { return d + 2*Margin(d) }

// Over reports whether deadline has passed, by the monotonic clock or by the wall clock. The
// monotonic clock stands still while a machine is suspended.
func Over(now, deadline time.Time) bool {
	return !now.Before(deadline) || !now.Round(0).Before(deadline.Round(0))
}

// Lease is one lease. The zero value is not usable: see New, Provisional and Unwanted.
type Lease struct {
	state   State
	holders int // of the work: a re-entrant holder counts each of its holds
	terms   *Terms
	length  time.Duration // Terms.Length, unless Extend asked for another one
	asked   time.Duration // the length that the renewal under way asks for
	least   time.Duration // the shortest length that may still be granted late; 0: none
	until   time.Time     // the local deadline: nobody works under the lease from then on
	// the server's lease cannot last longer than this, whatever became of the requests
	latest time.Time

	renewAt time.Time // the zero time: never, for all of these
	lookAt  time.Time
	stopAt  time.Time // MaxHold
	giveAt  time.Time // Stopping: the end of the grace. GivingBack and Denied: the next try
	free    time.Time // Refused: it is not given back before, unless the lease is over

	looked   time.Time     // the last look was sent
	crossing time.Duration // of the renewal that was under way when it began to linger; 0: none was
	retry    time.Duration // the pause after the last failure; GivingBack: 0: there was none
	denial   time.Duration // the pause after the last denial
	renewals int
	counted  bool // the renewal under way counts
	asking   bool // a renewal or a giving back is under way
	looking  bool
	lingers  bool // nobody holds it; it is kept from others until giveAt
}

// New is a whole lease that the server granted to a request that was sent at sent. It has one
// holder.
func New(terms *Terms, sent time.Time) Lease {
	l := Lease{state: Held, holders: 1, terms: terms, length: terms.Length, until: Deadline(sent, terms.Length),
		latest: sent.Add(terms.Length)}
	if terms.RenewEvery > 0 {
		l.renewAt = sent.Add(terms.RenewEvery)
	}
	l.limit(sent)
	if terms.RenewEvery == 0 || terms.RenewEvery > introduceAfter {
		l.lookAt = sent.Add(introduceAfter)
	}
	return l
}

// Provisional is a lease that was handed over at now until the local time until. It must be
// confirmed by a renewal.
func Provisional(terms *Terms, now, until time.Time) Lease {
	l := Lease{state: Confirming, holders: 1, terms: terms, length: terms.Length, until: until, latest: until}
	l.renewAt = now.Add(until.Sub(now) / 3)
	l.limit(now)
	return l
}

// Unwanted is what may be left on the server of a request that was given up: it is only to be given
// back, until effort.
func Unwanted(now, effort time.Time) Lease {
	return Lease{state: GivingBack, until: now, latest: effort, giveAt: now}
}

func (l *Lease) limit(from time.Time) {
	l.stopAt = time.Time{}
	if l.terms.MaxHold > 0 {
		l.stopAt = from.Add(l.terms.MaxHold)
	}
}

// State is what the lease is in now.
func (l *Lease) State() State { return l.state }

// Length is how long the server keeps the lease after the next renewal.
func (l *Lease) Length() time.Duration { return l.length }

// Until is the local deadline.
func (l *Lease) Until() time.Time { return l.until }

// Working reports whether somebody may work under the lease at now.
func (l *Lease) Working(now time.Time) bool {
	return (l.state == Confirming || l.state == Held) && !Over(now, l.until)
}

// Ours reports whether the lock is this holder's as far as is known at now, also if the work was
// ended by a limit.
func (l *Lease) Ours(now time.Time) bool { return l.state <= Stopping && !Over(now, l.until) }

// Done reports whether there is nothing left to do.
func (l *Lease) Done() bool { return l.state == Released || l.state == Left }

// Due is when Step must be called next, at the latest. Only a lease that is Done is never due.
func (l *Lease) Due() (at time.Time) {
	switch l.state {
	case Released, Left:
		return time.Time{}
	case Refused:
		return l.until
	case GivingBack, Denied:
		at = l.latest
		if !l.asking {
			at = earlier(at, l.giveAt)
		}
		return at
	case Stopping:
		if at = l.giveAt; !l.lingers {
			at = earlier(at, l.until)
		}
	default:
		at = earlier(l.until, l.stopAt)
	}
	if !l.asking {
		at = earlier(at, l.renewAt)
	}
	if !l.looking && !l.lookAt.IsZero() && (!l.asking || !l.renewable()) {
		at = earlier(at, l.lookAt)
	}
	return at
}

// Step returns what is due at now, and notes that it is under way. Call it until it returns None.
func (l *Lease) Step(now time.Time) Action {
	switch {
	case l.Done():
		return None
	case l.state == GivingBack, l.state == Denied:
		return l.stepBack(now)
	case l.state == Refused && !Over(now, l.until):
		return None
	case l.state == Refused:
		l.move(expired)
		l.asking, l.giveAt, l.retry = false, now, 0
		return l.stepBack(now)
	case !l.lingers && Over(now, l.until):
		l.move(expired)
		l.asking, l.giveAt, l.retry = false, now, 0
		return Expire
	case l.state == Stopping && due(now, l.giveAt):
		l.move(givenUp)
		l.asking, l.giveAt, l.retry = false, now, 0
		return l.stepBack(now)
	case l.state != Stopping && due(now, l.stopAt):
		l.stop(now, now.Add(l.terms.Grace))
		return StopMaxHold
	case !l.asking && due(now, l.renewAt):
		return l.renew(now)
	case !l.looking && due(now, l.lookAt):
		return l.look(now)
	}
	return None
}

func (l *Lease) renew(now time.Time) Action {
	l.counted = l.state != Confirming
	if l.counted && l.terms.MaxRenewals > 0 && l.renewals >= l.terms.MaxRenewals && l.state == Held {
		l.renewAt = time.Time{}
		l.stop(now, earlier(now.Add(l.terms.Grace), l.until.Add(-Margin(l.length))))
		return StopMaxRenewals
	}
	l.ask(now)
	return Renew
}

// look asks by a renewal where there are renewals: that also makes the lock known to the server's
// tracking. It does not count, and changes no schedule.
func (l *Lease) look(now time.Time) Action {
	if !l.renewable() {
		l.looking, l.looked, l.lookAt = true, now, time.Time{}
		return Look
	}
	if l.asking {
		return None // its answer tells as much
	}
	l.counted, l.looked, l.lookAt = false, now, time.Time{}
	l.ask(now)
	return Renew
}

func (l *Lease) renewable() bool { return !l.renewAt.IsZero() }

// ask notes that a renewal leaves now.
func (l *Lease) ask(now time.Time) {
	if l.lingers {
		l.length = l.lingering(now)
	}
	l.asking, l.asked = true, l.length
	l.latest = later(l.latest, now.Add(l.length))
}

func (l *Lease) stop(now, giveAt time.Time) {
	l.move(limited)
	l.giveAt, l.stopAt = later(now, giveAt), time.Time{}
}

// stepBack gives back. What is due is tried once even if the lease is over by this process's clock: it
// may have been prolonged by what this process does not know of.
func (l *Lease) stepBack(now time.Time) Action {
	over := !now.Before(l.latest)
	switch {
	case !l.asking && due(now, l.giveAt) && (!over || l.retry == 0):
		l.asking = true
		return GiveBack
	case over:
		l.move(lapsed)
	}
	return None
}

func due(now, at time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earlier is the earlier one of two times, of which the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
