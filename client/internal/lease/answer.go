// SPDX-License-Identifier: Apache-2.0

package lease

import "time"

// Renewed reports that the server confirmed the renewal that was sent at sent, and frees the slot.
func (l *Lease) Renewed(sent time.Time) {
	first, length := l.state == Confirming, l.asked
	l.asking = false
	if l.state > Stopping {
		return
	}
	if first {
		l.state = Held
	}
	if length == 0 { // Verify: still ours, and nothing was prolonged
		return
	}
	if l.byHand {
		l.length = length
	} else if !first {
		l.renewals++
	}
	l.until = later(l.until, Deadline(sent, length))
	if l.terms.RenewEvery == 0 {
		l.renewAt = time.Time{}
	} else if !l.renewAt.IsZero() {
		l.renewAt = sent.Add(l.every())
	}
	if l.terms.Replicas > 0 && l.terms.Crowd == 0 { // tracking tells nothing on the connections that wait for replicas
		l.lookAt = sent
	} else if !l.looking && !l.news { // news can be of a change behind it
		l.lookAt = time.Time{}
	}
}

// Late reports that the server confirmed a renewal for length that was sent at sent, after Failed was told
// of it. Another one may have the slot meanwhile.
func (l *Lease) Late(sent time.Time, length time.Duration) {
	if l.state > Stopping || length != l.length { // or a shorter one counts since
		return
	}
	l.until = later(l.until, Deadline(sent, length))
	if l.state == Held {
		l.renewals++
		if !l.asking && !l.renewAt.IsZero() {
			l.renewAt = later(l.renewAt, sent.Add(l.every()))
		}
	}
}

// every is the pause between renewals: the longest useful one, if the length was changed.
func (l *Lease) every() time.Duration {
	if l.length == l.terms.Length {
		return l.terms.RenewEvery
	}
	return min(l.terms.RenewEvery, l.length/3)
}

// Failed reports at now that a renewal was not answered, or refused for a reason that says nothing
// about the lock, and frees the slot. It may have been done: that only prolongs the lease.
func (l *Lease) Failed(now time.Time) {
	l.asking = false
	switch {
	case l.state > Stopping || l.byHand && l.state != Confirming:
	case l.asked == 0:
		l.doubted, l.lookAt = false, now.Add(min(retry(l.length), longestLook))
	default: // after half of what is left at most: a lock that was handed over is good for two seconds only
		l.renewAt = now.Add(retry(min(l.length, 10*l.until.Sub(now))))
	}
}

// Refuse reports that a server says that the lock is not ours: nobody may work under it any more. The
// server that said so need not be the one that granted it, so what another one may have is given back
// when the holders have left, and at the deadline at the latest.
func (l *Lease) Refuse() {
	l.asking, l.looking, l.doubted = false, false, false
	if l.state <= Stopping {
		l.state = Refused
	}
}

// Looked reports that a look was answered. If another holder was found, a renewal decides: it
// also says why.
func (l *Lease) Looked(ours bool) {
	l.looking = false
	l.doubted = l.doubted || !ours
}

// LookFailed reports at now that a look was not answered.
func (l *Lease) LookFailed(now time.Time) {
	l.looking, l.lookAt = false, now.Add(min(max(retry(l.length), lookPause), longestLook))
}

// Noticed reports that the key may have changed: it is looked at soon, at once after a quiet time.
func (l *Lease) Noticed(now time.Time) {
	if l.state <= Stopping {
		l.news, l.lookAt = true, earlier(later(now, l.looked.Add(lookPause)), l.lookAt)
	}
}

// Extend takes the slot for a renewal by hand for that length; 0: for as long as the last one. Less
// than is left ends the lease here that much earlier, at once and for every later renewal, because
// the answer can be lost. It changes nothing if the lock is not to be kept, or if the slot is
// taken: see Asking.
func (l *Lease) Extend(now time.Time, length time.Duration) (asks time.Duration, ok bool) {
	if !l.Kept(now) || l.asking {
		return 0, false
	}
	if length == 0 {
		length = l.length
	}
	l.wake(now)
	l.take(length, true)
	l.latest = later(l.latest, now.Add(length))
	if deadline := Deadline(now, length); deadline.Before(l.until) {
		l.until, l.length = deadline, length
		if !l.renewAt.IsZero() {
			l.renewAt = earlier(l.renewAt, now.Add(l.every()))
		}
	}
	return length, true
}

// Pass makes the next one in this process the holder, after the last one left. It returns false if
// the lease cannot be passed on: it is over.
func (l *Lease) Pass(now time.Time) bool {
	if !l.Working(now) {
		return false
	}
	l.renewals = 0
	l.limit(now)
	return true
}

// Stop reports that the work is to end: its context is over, or the client shuts down. The lock is given back
// at that time; at the zero one by its release, and is renewed until then, however long that takes.
func (l *Lease) Stop(giveAt time.Time) {
	if l.state <= Held {
		l.state, l.limitAt = Stopping, giveAt
	}
}

// End reports that nobody here wants the lock any more: the last holder left, or the client closes.
func (l *Lease) End() { l.state, l.asking, l.looking = Over, false, false }
