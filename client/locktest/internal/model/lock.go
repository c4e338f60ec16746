// SPDX-License-Identifier: Apache-2.0

package model

// Token is a fencing token. Only the order of tokens and whether they are ahead of the clock
// matters, so they are numbered anew in each state. 0: none.
type Token = uint8

// Owner is the owner string of one acquisition. 0: nobody.
type Owner uint8

// ownerOf is the owner string of a client: of its present acquisition, or of the one before.
func ownerOf(client int, past uint8) Owner { return Owner(2*client + 1 + int(past)) }

func (o Owner) client() int { return int(o-1) / 2 }
func (o Owner) past() uint8 { return uint8(o-1) % 2 }

// hold is the hold of an acquisition of a joinable lock, as a bit.
func (o Owner) hold() uint8 { return 1 << (o - 1) }

// Waiter is a place in the line.
type Waiter struct {
	Owner Owner
	Age   uint8 // ticks since it asked, at most Config.Silence+1
}

// Lock is a lock's key. The zero value is no key.
type Lock struct {
	Owner Owner
	Rem   int8 // the lease ends in so many ticks; it has ended at 0 and below: the key is there for its token, or its line
	Exp   int8 // the key expires in so many ticks
	Fence Token
	Holds uint8 // of a joinable lock, as bits; 0: it is a plain one
	Age   uint8 // ticks since the lock was granted, at most Config.Silence+1
	Line  [maxLine]Waiter
}

// forever is a Rem or an Exp that never comes.
const forever int8 = 127

func (l *Lock) waiters() int {
	n := 0
	for n < maxLine && l.Line[n].Owner != 0 {
		n++
	}
	return n
}

func (l *Lock) find(o Owner) int {
	for i := range l.Line {
		if l.Line[i].Owner == o && o != 0 {
			return i
		}
	}
	return -1
}

func (l *Lock) rename(to *[2*maxClients + 1]Owner) {
	if l.Owner == 0 {
		return
	}
	if had := l.Holds; had != 0 {
		l.Holds = 0
		for o := Owner(1); had>>(o-1) != 0; o++ {
			l.Holds |= had >> (o - 1) & 1 * to[o].hold()
		}
		return
	}
	l.Owner = to[l.Owner]
	for i := range l.Line {
		if l.Line[i].Owner == 0 {
			break
		}
		l.Line[i].Owner = to[l.Line[i].Owner]
	}
}

// place is where an owner is at a lock: 0 nowhere, 1 the holder, 2 the first in line, and so on.
func (l *Lock) place(o Owner) uint64 {
	switch {
	case l.Owner == 0:
		return 0
	case l.Owner == o:
		return 1 + uint64(l.find(o)+1)<<4
	}
	return uint64(l.find(o)+1) << 4
}

// knows reports whether an owner has the lock, or had it last, or stands in the line.
func (l *Lock) knows(o Owner) bool {
	if l.Holds != 0 {
		return l.Holds&o.hold() != 0
	}
	return l.Owner == o || l.find(o) >= 0
}
