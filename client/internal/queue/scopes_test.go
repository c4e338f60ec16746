// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/holdfast-go/holdfast/client/internal/lease"
)

var (
	plainTerms   = &lease.Terms{Length: time.Second}
	longTerms    = &lease.Terms{Length: 2 * time.Second}
	guardedTerms = &lease.Terms{Length: time.Second, Guard: time.Second}
	minimumTerms = &lease.Terms{Length: time.Second, MinHold: time.Second}
)

func plain(p uint8) role   { return role{proc: p, terms: plainTerms} }
func long(p uint8) role    { return role{proc: p, terms: longTerms} }
func guarded(p uint8) role { return role{proc: p, terms: guardedTerms} }
func minimum(p uint8) role { return role{proc: p, terms: minimumTerms} }
func tries(p uint8) role   { return role{proc: p, try: true, terms: plainTerms} }
func insists(p uint8) role { return role{proc: p, try: true, fresh: true, terms: plainTerms} }
func ends(p uint8) role    { return role{proc: p, until: 2, terms: plainTerms} }

func scopes() []scope {
	pair, four := []role{plain(0), plain(0), plain(1)}, []role{plain(0), plain(0), plain(1), plain(1)}
	mixed, minima := []role{minimum(0), plain(0), plain(1)}, []role{minimum(0), minimum(0), minimum(1)}
	return []scope{
		{name: "alone", roles: []role{plain(0), plain(1)}, budget: budget{sEnd: 1}},
		{name: "contexts end", roles: four, budget: budget{sEnd: 2}},
		{name: "three and three", wide: true, roles: []role{plain(0), plain(0), plain(0), plain(1), plain(1), plain(1)}, budget: budget{sEnd: 1}},
		{name: "guards", young: true, roles: []role{plain(0), guarded(0), plain(0), guarded(1)}, budget: budget{sEnd: 2}},
		{name: "guards, faults", wide: true, young: true, roles: []role{plain(0), guarded(0), plain(1)}, budget: budget{sEnd: 1, sLate: 1}},
		{name: "minima", roles: []role{minimum(0), plain(0), minimum(0), minimum(1)}, budget: budget{sEnd: 2}},
		{name: "minima, lost", roles: minima, budget: budget{sEnd: 1, sLoseReply: 1, sLoseMessage: 1, sKey: 1}},
		{name: "minima, expired", roles: minima, budget: budget{sLost: 1}},
		{name: "minima, doubled", roles: []role{minimum(0), minimum(0), plain(1), plain(1)}, budget: budget{sDouble: 1}},
		{name: "minima, tries", roles: []role{minimum(0), tries(0), minimum(1)}, budget: budget{sClose: 1, sTick: 1}},
		{name: "minima, faults", wide: true, roles: mixed, budget: budget{sEnd: 1, sLate: 1, sDouble: 1, sRefuse: 1}},
		{name: "minima, paused", roles: mixed, budget: budget{sPause: 1, sEnd: 1}},
		{name: "tries", roles: []role{tries(0), plain(0), tries(0), plain(1)}, budget: budget{sEnd: 1, sLoseReply: 1, sTick: 1}},
		{name: "key changed", roles: []role{plain(0), long(0), plain(0), plain(1)}, budget: budget{sKey: 1, sEnd: 1}},
		{name: "outage", wide: true, roles: pair, budget: budget{sLoseCall: 3, sTick: 2}},
		{name: "refusals", roles: []role{plain(0), long(0), plain(1)}, budget: budget{sEnd: 1, sRefuse: 2, sLoseReply: 1}},
		{name: "lost, doubled", wide: true, roles: pair, budget: budget{sEnd: 1, sLoseReply: 1, sLoseMessage: 1, sDouble: 1}},
		{name: "late, doubled", wide: true, roles: pair, budget: budget{sEnd: 1, sLate: 1, sDouble: 1}},
		{name: "late, lost", roles: pair, budget: budget{sEnd: 1, sLate: 1, sLoseMessage: 1}},
		{name: "late, paused", wide: true, roles: pair, budget: budget{sLate: 1, sPause: 1}},
		{name: "paused, lost", roles: pair, budget: budget{sEnd: 1, sPause: 1, sLoseMessage: 1}},
		{name: "paused, doubled", wide: true, roles: pair, budget: budget{sPause: 1, sDouble: 1, sLoseReply: 1}},
		{name: "expired", wide: true, roles: four, budget: budget{sLost: 1, sEnd: 1}},
		{name: "expired, doubled", roles: pair, budget: budget{sLost: 1, sDouble: 1, sLoseReply: 1}},
		{name: "death", roles: four, budget: budget{sDie: 1, sLoseReply: 1}},
		{name: "death, faults", wide: true, roles: pair, budget: budget{sDie: 1, sEnd: 1, sLoseMessage: 1, sLate: 1}},
		{name: "close", roles: four, budget: budget{sClose: 1, sEnd: 1}},
		{name: "close, faults", roles: pair, budget: budget{sClose: 1, sLoseReply: 1, sLate: 1}},
		{name: "confirmed", acks: true, roles: []role{plain(0), plain(0), plain(1)}, budget: budget{sEnd: 1, sLoseReply: 1, sRefuse: 1}},
		{name: "confirmed, paused", acks: true, roles: []role{plain(0), minimum(0), plain(1)}, budget: budget{sPause: 1, sTick: 1}},
		{name: "votes", votes: true, roles: []role{plain(0), tries(0), plain(0), plain(1)}, budget: budget{sEnd: 1, sTick: 1, sClose: 1}},
		{name: "votes, faults", wide: true, votes: true, roles: []role{plain(0), plain(0), plain(1)}, budget: budget{sEnd: 1, sLate: 1, sLoseReply: 1, sPause: 1}},
		{name: "fresh tries", roles: []role{plain(0), insists(0), plain(1)}, budget: budget{sEnd: 1, sTick: 1}},
		{name: "deadlines", roles: []role{ends(0), ends(0), plain(0), plain(1)}, budget: budget{sTick: 1, sEnd: 1}},
		{name: "all", wide: true, roles: []role{plain(0), plain(1)}, budget: budget{sEnd: 1, sLoseMessage: 1, sLate: 1, sPause: 1}},
	}
}
