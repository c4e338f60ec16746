// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// A client's lease is the lease machine itself (client/internal/lease). All that one can be like is
// numbered, and a state of the model keeps the number. 0 is none, or one that is over.

const (
	tickTime = time.Minute
	endTick  = tickTime * 9 / 10 // in a tick
)

var now = time.Unix(1_000_000, 0)

func ticks(n int8) time.Duration { return time.Duration(n) * tickTime }

// stand is a lease machine at a time.
type stand struct {
	lease.Lease
	now time.Time
}

// outlook is all that matters of a lease machine: what is due of it is a renewal, or its end.
type outlook struct {
	state         lease.State
	asking, due   bool // before the next tick
	until, length time.Duration
}

var (
	leases   = []stand{{}}
	outlooks = map[outlook]uint8{}
)

func (m stand) number() uint8 {
	if !m.Working(m.now) {
		return 0
	}
	o := outlook{m.State(), m.Asking(), !m.Due().After(m.now.Add(endTick)), m.Until().Sub(m.now), m.Length()}
	n, known := outlooks[o]
	if !known {
		n = uint8(len(leases))
		outlooks[o] = n
		leases = append(leases, m)
	}
	return n
}

// terms are those of a lease of n ticks. Renewals are due at once: when one is sent, the model says.
func terms(n int8) *lease.Terms { return &lease.Terms{Length: ticks(n), RenewEvery: 1} }

// left are the ticks until its deadline, of which the margin makes the last one shorter.
func left(n uint8) int8 {
	if n == 0 {
		return 0
	}
	m := &leases[n]
	return int8((m.Until().Sub(m.now) + tickTime - 1) / tickTime)
}

// granted is a lease of n ticks, if asks of them are left since it was asked for.
func granted(n, asks int8) uint8 {
	return stand{lease.New(terms(n), now.Add(ticks(asks-n))), now}.number()
}

// handed is one that was handed over, and has some ticks left.
func handed(n, has int8) uint8 {
	return stand{lease.Provisional(terms(n), now, lease.Deadline(now, ticks(has))), now}.number()
}

// renews is the lease with a renewal that was sent before the next tick; false: none is due.
func renews(n uint8) (uint8, bool) {
	m := leases[n]
	due := m.Step(m.now.Add(endTick)) == lease.Renew
	return m.number(), due
}

// renewed is the lease when its renewal is answered, if asks ticks of it are left since that was sent.
func renewed(n uint8, asks int8) uint8 {
	m := leases[n]
	m.Renewed(m.now.Add(ticks(asks) - m.Length()))
	return m.number()
}

// failed is the lease when its renewal has no answer.
func failed(n uint8) uint8 {
	m := leases[n]
	m.Failed(m.now)
	return m.number()
}

// later is the lease a tick later.
func later(n uint8) uint8 {
	m := leases[n]
	if m.now = m.now.Add(tickTime); !m.Working(m.now) && m.Step(m.now) != lease.Expire {
		panic("model: a lease is over, and does not expire")
	}
	return m.number()
}
