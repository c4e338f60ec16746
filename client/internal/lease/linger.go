package lease

import "time"

// A lease lingers when its last holder has left before MinHold is over. Nobody works under it, so it
// has no local deadline: until is only what the server is known to keep it for. It is renewed until
// that is the end of MinHold, and given back then.

// Linger keeps the lock from others until the time until, although the last holder has left: then
// it is given back. A renewal for Length leaves now, which makes the server keep it without this
// process. It returns false if the lock is not ours any more.
func (l *Lease) Linger(now, until time.Time) bool {
	if l.holders > 0 || !l.Working(now) {
		return false
	}
	l.renewAt = earlier(l.renewAt, now.Add(l.until.Sub(now)/3))
	if l.asking {
		l.crossing = l.asked
	}
	l.stop(now, until)
	l.lingers, l.length = true, l.lingering(now)
	l.latest = later(l.latest, now.Add(l.length))
	return true
}

// lingering is for how long the server is asked to keep it from now on: no longer than it must, because
// this process may end.
func (l *Lease) lingering(now time.Time) time.Duration {
	return Kept(max(l.giveAt.Sub(now), time.Millisecond))
}

// Lingering reports whether nobody holds it, and it is kept from others.
func (l *Lease) Lingering() bool { return l.lingers }

// Lingers reports that the server confirmed the renewal of Linger that was sent at sent.
func (l *Lease) Lingers(sent time.Time) {
	if l.state == Stopping {
		length := l.lingering(sent)
		if l.crossing > 0 {
			length = min(length, l.crossing)
		}
		l.lingered(sent, length)
	}
}

// LingerFailed reports at now that the renewal of Linger was not answered.
func (l *Lease) LingerFailed(now time.Time) {
	if l.state == Stopping && !l.asking {
		l.hurry(now)
	}
}

// lingered notes that a renewal of that length was confirmed. The last one that was answered counts,
// and a shorter one that is under way, or was given up, can still come.
func (l *Lease) lingered(sent time.Time, length time.Duration) {
	if l.least > 0 {
		length = min(length, l.least)
	}
	if l.asking {
		length = min(length, l.asked)
	}
	l.until, l.retry = Deadline(sent, length), 0
	if l.until.Before(l.giveAt) {
		l.renewAt = sent.Add(length / 3)
		return
	}
	l.renewAt = time.Time{}
	l.lookAt = earlier(l.lookAt, sent.Add(introduceAfter)) // those who wait here hear of a break
}

// hurry sets the next renewal after one that failed: while the server may have the lease it is tried
// ever more often, and after that ever more seldom.
func (l *Lease) hurry(now time.Time) {
	pause := max(l.terms.Length/20, time.Millisecond)
	if left := l.until.Sub(now); left > 0 {
		pause = max(min(pause, left/4), time.Millisecond)
	} else {
		l.retry = min(max(2*l.retry, pause), slowestRetry)
		pause = l.retry
	}
	l.renewAt = now.Add(pause)
}
