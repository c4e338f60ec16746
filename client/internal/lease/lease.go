// SPDX-License-Identifier: Apache-2.0

// Package lease is the life of one lease as its holder sees it: a state machine without goroutines,
// clocks or servers. Time goes in, and what is due comes out. It knows nothing of owners, keys or
// calls.
//
// The states:
//
//	Confirming  handed over for two seconds at most, until a renewal is answered
//	Held        granted for a whole lease
//	Stopping    a limit ended the work, its context is over, or the client shuts down; ours until the
//	            grace is over, and in a shutdown until the release
//	Refused     a server says that it is not ours; the work has been ended
//	Over        nothing is renewed any more
//
// The events, and the state that follows. An action in brackets is what Step or the event asks for:
//
//	event       Confirming        Held              Stopping         Refused          Over
//	Renewed     Held              Held              Stopping         Refused          Over
//	Failed      Confirming        Held              Stopping         Refused          Over
//	Late        Confirming        Held              Stopping         Refused          Over
//	Refuse      Refused           Refused           Refused          Refused          Over
//	Pass        Confirming        Held              no               no               no
//	Extend      Confirming        Held              Stopping         no               no
//	Stop        Stopping          Stopping          Stopping         Refused          Over
//	End         Over [release]    Over [release]    Over [release]   Over [undo]      Over
//	limit       Stopping [stop]   Stopping [stop]   -                -                -
//	grace       -                 -                 Over [GiveBack]  -                -
//	deadline    Over [Expire]     Over [Expire]     Over [Expire]    Over [Expire]    -
//
// End is for the last holder, when it has left, or for a client that closes. Where the grant is passed on,
// Pass comes in its place. Extend in Stopping is for a shutdown. Limit, grace and deadline are times: Step
// finds them due.
//
// The deadline is local, and earlier than the server's. A renewal never shortens a lease at the
// server, so every confirmed one can only move the deadline on, in whatever order they arrive. Late is the
// answer to one that was given up, of which Failed was told.
//
// There is one slot for renewals. Whoever has it, the keeper or a caller of Extend, sends the next
// one, so two renewals of a lock never cross, but for those that were given up. A look is a read: it needs
// no slot, nor does a renewal for a millisecond, which asks and prolongs nothing.
//
// A Lease is not safe for concurrent use: its owner guards it with one mutex.
package lease

import "time"

// Terms are what a lock is asked for with, as the server and its holder see it. They are comparable:
// a lock is passed on inside a process only between equal ones. A Terms is never written once it is
// in use.
type Terms struct {
	Length      time.Duration // how long the server keeps the lease after each renewal
	RenewEvery  time.Duration // from one renewal to the next; 0: it is never renewed
	MaxRenewals int           // the work is ended when one more would be due; 0: no limit
	MaxHold     time.Duration // the work is ended after this; 0: no limit
	Grace       time.Duration // from the end of the work to the release

	MinHold time.Duration // how long the key keeps the lock from others; 0: as long as it is held
	Guard   time.Duration // how long the server's memory must be unbroken before it grants; 0: any

	// Who else may have it meanwhile. 0: nobody; n: limited holders, n in all; Shared: those that share it
	Crowd int
	// Whoever waits wants what a holder finishes with, rather than the lock
	Valued bool

	Replicas    int           // how many must have each grant and each renewal; 0: none
	ReplicaWait time.Duration // how long the server waits for them

	Label string // shown with the owner

	// Length, Guard and MinHold as the library takes them; "" for 0.
	TTL, GuardText, MinHoldText string
}

// Shared is the Crowd of a shared lock, and no limit that anybody asks for.
const Shared = -1 << 31

// State is where a lease is in its life.
type State uint8

// The states; see the package's table.
const (
	Confirming State = iota
	Held
	Stopping
	Refused
	Over
)

// Action is what a Lease needs done.
type Action uint8

// The actions. Renew and Verify take the slot: their sender reports Renewed, Failed or Refuse. The
// sender of a Look reports Looked.
const (
	None            Action = iota
	Renew                  // send a renewal for Length
	Verify                 // send a renewal for the shortest time: a look has found another holder
	Look                   // ask who has the lock: its key may have changed
	Expire                 // the lease is over by this process's clock: end the work if that goes on, and give back
	StopMaxHold            // the work has lasted for MaxHold: end it
	StopMaxRenewals        // MaxRenewals are used up: end the work
	GiveBack               // the grace is over: give back
)

// Lease is one lease. The zero value is not usable: see New and Provisional.
type Lease struct {
	state  State
	terms  *Terms
	length time.Duration // Terms.Length, unless Extend asked for another one
	until  time.Time     // the local deadline
	latest time.Time     // the server's end, if it ran the last request at once

	renewAt time.Time // the zero time: never, for all of these
	lookAt  time.Time
	limitAt time.Time // MaxHold; Stopping: the end of the grace

	asking   bool          // the slot is taken
	asked    time.Duration // the length that was asked for; 0: by Verify
	byHand   bool          // by Extend
	doubted  bool          // a look found another holder
	looking  bool
	news     bool      // of the key, since the slot was taken
	looked   time.Time // the last look was sent
	renewals int       // confirmed, automatic, of this holder
}

// New is a whole lease that the server granted to a request that was sent at sent.
func New(terms *Terms, sent time.Time) Lease {
	l := Lease{state: Held, terms: terms, length: terms.Length,
		until: Deadline(sent, terms.Length), latest: sent.Add(terms.Length)}
	if terms.RenewEvery > 0 {
		l.renewAt = sent.Add(terms.RenewEvery)
	}
	if terms.Crowd == 0 && (terms.RenewEvery == 0 || terms.RenewEvery > introduceAfter) {
		l.lookAt = sent.Add(introduceAfter)
	}
	l.limit(sent)
	return l
}

// Provisional is a lease that was handed over at now until the local time until. It must be
// confirmed by a renewal, which is due in a third of that.
func Provisional(terms *Terms, now, until time.Time) Lease {
	l := Lease{state: Confirming, terms: terms, length: terms.Length, until: until, latest: until}
	l.renewAt = now.Add(until.Sub(now) / 3)
	l.limit(now)
	return l
}

func (l *Lease) limit(from time.Time) {
	if l.terms.MaxHold > 0 {
		l.limitAt = from.Add(l.terms.MaxHold)
	}
}

// State is what the lease is in now.
func (l *Lease) State() State { return l.state }

// Length is how long the server keeps the lease after the next automatic renewal.
func (l *Lease) Length() time.Duration { return l.length }

// Agreed reports whether the lease is as long as its Terms say, and will be after the renewal under way.
func (l *Lease) Agreed() bool {
	return l.length == l.terms.Length && (!l.asking || !l.byHand || l.asked == l.length)
}

// Until is the local deadline.
func (l *Lease) Until() time.Time { return l.until }

// Latest is when the server's lease is over, if it ran the last request at once.
func (l *Lease) Latest() time.Time { return l.latest }

// Asking reports whether the slot for renewals is taken.
func (l *Lease) Asking() bool { return l.asking }

// Working reports whether somebody may work under the lease at now.
func (l *Lease) Working(now time.Time) bool { return l.state <= Held && !Past(now, l.until) }

// Kept reports whether the lock is to be kept at now: somebody may work under it, or the client shuts down.
func (l *Lease) Kept(now time.Time) bool {
	return l.Working(now) || l.state == Stopping && l.limitAt.IsZero() && !Past(now, l.until)
}

// Due is when Step must be called next, at the latest; the zero time: never.
func (l *Lease) Due() time.Time {
	switch l.state {
	case Over:
		return time.Time{}
	case Refused:
		return l.until
	}
	at := earlier(l.until, l.limitAt)
	if !l.asking {
		at = earlier(at, l.renewAt)
		if l.doubted {
			at = earlier(at, l.looked)
		}
	}
	if !l.looking {
		at = earlier(at, l.lookAt)
	}
	return at
}

// Step returns what is due at now, and notes that it is under way. Call it until it returns None.
func (l *Lease) Step(now time.Time) Action {
	l.wake(now)
	switch {
	case l.state == Over:
	case Past(now, l.until):
		l.state = Over
		return Expire
	case l.state == Refused:
	case due(now, l.limitAt) && l.state == Stopping:
		l.state = Over
		return GiveBack
	case due(now, l.limitAt):
		l.Stop(now.Add(l.terms.Grace))
		return StopMaxHold
	case !l.asking && l.doubted:
		l.take(0, false)
		l.doubted = false
		return Verify
	case !l.asking && due(now, l.renewAt):
		return l.renew(now)
	case !l.looking && due(now, l.lookAt):
		l.looking, l.looked, l.lookAt = true, now, time.Time{}
		return Look
	}
	return None
}

// wake has the deadline, and the next renewal, as near by the monotonic clock as by the wall clock: they were
// further by it if the machine was suspended, and timers go by it.
func (l *Lease) wake(now time.Time) {
	l.until = At(now, l.until)
	if !l.renewAt.IsZero() {
		l.renewAt = At(now, l.renewAt)
	}
}

func (l *Lease) renew(now time.Time) Action {
	if most := l.terms.MaxRenewals; most > 0 && l.renewals >= most && l.state == Held {
		l.renewAt = time.Time{}
		l.Stop(earlier(now.Add(l.terms.Grace), l.until.Add(-Margin(l.length))))
		return StopMaxRenewals
	}
	l.take(l.length, false)
	l.latest = later(l.latest, now.Add(l.length))
	return Renew
}

func (l *Lease) take(length time.Duration, byHand bool) {
	l.asking, l.asked, l.byHand, l.news = true, length, byHand, false
}
