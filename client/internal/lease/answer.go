package lease

import "time"

// Renewed reports that the server confirmed the renewal that was sent at sent.
func (l *Lease) Renewed(sent time.Time) {
	first := l.state == Confirming
	l.asking = l.asking && l.state > Stopping // then it is the giving back that is under way
	if l.state > Stopping {
		return
	}
	if l.lingers {
		l.lingered(sent, l.asked)
		return
	}
	l.confirm(sent, l.asked)
	switch {
	case first:
		l.schedule(sent)
		l.lookAt = time.Time{} // the renewal has told the server's tracking
	case l.counted:
		l.renewals++
		l.schedule(sent)
	}
}

// confirm starts the local lease anew, for a request of that length. A renewal that was given up,
// or that crossed with this one, can still be granted after it, and then the lease ends that one's
// length later: at the earliest, that is counted from now too.
func (l *Lease) confirm(sent time.Time, length time.Duration) {
	l.move(confirmed)
	length = min(length, l.length)
	if l.least > 0 {
		length = min(length, l.least)
	}
	l.until = later(l.until, Deadline(sent, length))
}

// doubt notes a request of that length whose outcome is unknown, or that another one crosses.
func (l *Lease) doubt(length time.Duration) {
	if l.least == 0 || length < l.least {
		l.least = length
	}
}

// schedule sets the next renewal, unless MaxRenewals has ended them.
func (l *Lease) schedule(sent time.Time) {
	l.retry = 0
	switch {
	case l.terms.RenewEvery == 0:
		l.renewAt = time.Time{}
	case !l.renewAt.IsZero():
		l.renewAt = sent.Add(min(l.terms.RenewEvery, l.every()))
	}
}

// every is the longest useful pause between renewals of a lease whose length was changed.
func (l *Lease) every() time.Duration {
	if l.length == l.terms.Length {
		return l.terms.RenewEvery
	}
	return l.length / 3
}

// Looked reports that the server still has the lock as ours, without a renewal.
func (l *Lease) Looked() { l.looking = false }

// Failed reports that an action was not answered, or was refused for a reason that says nothing
// about the lock. It is tried again.
func (l *Lease) Failed(action Action, now time.Time) {
	switch {
	case action == Look:
		l.looking, l.lookAt = false, now.Add(max(l.length/20, lookPause))
	case action == GiveBack:
		l.asking, l.retry = false, min(max(2*l.retry, 5*time.Millisecond), slowestRetry)
		l.giveAt = now.Add(l.retry)
	case l.state > Stopping: // a renewal that nobody waits for any more
	case l.lingers:
		l.doubt(l.asked)
		l.asking = false
		l.hurry(now)
	case l.counted || l.state == Confirming:
		l.doubt(l.asked)
		l.asking, l.renewAt = false, now.Add(max(l.length/20, time.Millisecond))
	default:
		l.doubt(l.asked)
		l.asking, l.lookAt = false, now.Add(max(l.length/20, time.Millisecond))
	}
}

// Refused reports at now that the server says that the lock is not ours, or that it was broken: nobody
// may work under it any more. The server that said so may not be the one that has it, and a minority
// of several may have it still. So it is given back: when all holders have left, but not before free,
// and at the local deadline at the latest.
func (l *Lease) Refused(now, free time.Time) {
	if l.state > Stopping {
		return
	}
	l.move(refused)
	switch {
	case l.lingers:
		l.until = later(now, free)
	case l.holders == 0:
		l.until = earlier(l.until, later(now, free))
	}
	l.free = free
}

// Outvoted is Refused by most of several servers. What the others have is given back.
func (l *Lease) Outvoted(now time.Time) {
	if l.state <= Stopping {
		l.move(expired)
		l.asking, l.giveAt, l.retry = false, now, 0
	}
}

// Noticed reports that the lock's key has changed: it is looked at soon, at once after a quiet
// time.
func (l *Lease) Noticed(now time.Time) {
	if l.state > Stopping {
		return
	}
	at := later(now, l.looked.Add(lookPause))
	l.lookAt = earlier(at, l.lookAt)
}

// Extend reports that a renewal for another length leaves now. A shorter one counts at once,
// because its answer can be lost. It returns false, and changes nothing, if nobody holds the lease
// any more.
func (l *Lease) Extend(now time.Time, length time.Duration) bool {
	if !l.Working(now) {
		return false
	}
	if l.asking {
		l.doubt(l.asked)
	}
	l.length = length
	l.latest = later(l.latest, now.Add(length))
	if l.until.After(Deadline(now, length)) {
		l.until = Deadline(now, length)
	}
	if l.renewable() {
		l.renewAt = earlier(l.renewAt, now.Add(min(l.terms.RenewEvery, l.every())))
	}
	return true
}

// Extended reports that the server confirmed the renewal of Extend for that length that was sent at
// sent.
func (l *Lease) Extended(sent time.Time, length time.Duration) {
	if l.state > Stopping {
		return
	}
	if l.lingers {
		l.lingered(sent, length)
		return
	}
	l.confirm(sent, length)
	l.schedule(sent)
}

// ExtendFailed reports that the renewal of Extend for that length was not answered.
func (l *Lease) ExtendFailed(now time.Time, length time.Duration) {
	l.doubt(length)
	if l.lingers && l.state == Stopping && !l.asking {
		l.until = earlier(l.until, Deadline(now, length))
		l.hurry(now)
	}
}

// Join adds a holder to a lease that is worked under. It returns false if there is none: it was
// released, or lost.
func (l *Lease) Join(now time.Time) bool {
	if l.holders == 0 || !l.Working(now) {
		return false
	}
	l.holders++
	return true
}

// Leave takes a holder away at now, and reports whether it was the last.
func (l *Lease) Leave(now time.Time) (last bool) {
	l.holders--
	if l.holders == 0 && l.state == Refused {
		l.until = earlier(l.until, later(now, l.free))
	}
	return l.holders == 0
}

// Pass makes the next one in this process the holder, after the last one left. It returns false if
// the lease cannot be passed on: it is over, or too little of it is left to begin anything.
func (l *Lease) Pass(now time.Time, least time.Duration) bool {
	if l.holders > 0 || !l.Working(now) || l.until.Sub(now) < least {
		return false
	}
	l.holders, l.renewals = 1, 0
	l.limit(now)
	return true
}

// GiveUp reports that nobody wants the lease any more, and that the owner is about to tell the
// server. It returns false if there is nothing to give back.
func (l *Lease) GiveUp() bool {
	if l.state > Stopping {
		return false
	}
	l.move(givenUp)
	l.asking = true
	return true
}

// GaveBack reports that the server knows.
func (l *Lease) GaveBack() { l.move(givenBack) }

// Denied reports that the server says that there was nothing to give back. It is told again, ever
// more seldom, until the lease must be over.
func (l *Lease) Denied(now time.Time) {
	l.move(denied)
	l.asking, l.denial = false, max(3*l.denial, deniedPause)
	l.giveAt, l.retry = now.Add(l.denial), l.denial
}

// Retry asks for the giving back again at now, by Step: the caller that was about it stopped
// waiting for the answer.
func (l *Lease) Retry(now time.Time) { l.asking, l.giveAt = false, now }

// Abandon ends the lease without giving it back, because the client closes: work may still go on
// under it.
func (l *Lease) Abandon() { l.move(abandoned) }
