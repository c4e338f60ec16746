package model

import (
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// The clients' deadlines are the lease machine's own (client/internal/lease). A state keeps only the
// deadline, in ticks from now. So each event makes the machine anew from that, and lets it happen.

const tickTime = time.Minute

var now = time.Unix(1_000_000, 0)

func ticks(n int8) time.Duration { return time.Duration(n) * tickTime }

// terms are those of a lease of n ticks. Renewals are due at once: when one is sent, the model says.
func terms(n int8) *lease.Terms { return &lease.Terms{Length: ticks(n), RenewEvery: 1} }

// left is a machine's deadline in ticks, of which the margin makes the last one shorter.
func left(m *lease.Lease) int8 {
	if !m.Working(now) {
		return 0
	}
	return int8((m.Until().Sub(now) + tickTime - 1) / tickTime)
}

// granted is what is left of a lease of n ticks, if asks of them are left since it was asked for.
func granted(n, asks int8) int8 {
	m := lease.New(terms(n), now.Add(ticks(asks-n)))
	return left(&m)
}

// standing is the machine of a lease of n ticks, which has some left. A provisional one is not confirmed yet.
func standing(n, has int8, provisional bool) lease.Lease {
	if provisional {
		return lease.Provisional(terms(n), now, lease.Deadline(now, ticks(has)))
	}
	return lease.New(terms(n), now.Add(ticks(has-n)))
}

// renewed is what is left when a renewal is answered, if asks ticks are left since that was sent.
func renewed(n, has, asks int8, provisional bool) int8 {
	m := standing(n, has, provisional)
	m.Step(m.Until().Add(-1)) // takes the slot
	m.Renewed(now.Add(ticks(asks - n)))
	return left(&m)
}

// ends reports whether a lease that has some left is over a tick later.
func ends(n, has int8, provisional bool) bool {
	m := standing(n, has, provisional)
	return m.Step(now.Add(tickTime)) == lease.Expire
}
