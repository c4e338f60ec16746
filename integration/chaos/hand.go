// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// hand is what an operator does. What concerns a lock is done at each primary that takes it.
func (l *lane) hand(k kind) error {
	name := lockNames[l.random.IntN(len(lockNames))]
	pause := l.span(200*time.Millisecond, 2*time.Second)
	f := fault{Kind: k, Target: "primaries"}
	if k == lockBreak || k == keyDelete || k == voteDelete {
		f.Lock = name
	}
	minority := 1 + l.random.IntN(max(1, len(l.servers.nodes)/2))
	return l.strike(f, func() error {
		primaries := l.servers.primaries()
		if len(primaries) == 0 {
			return errors.New("no primary answers")
		}
		switch k {
		case lockBreak:
			return some(primaries, "FCALL", functions.Break, "1", prefix+name, functions.OptReason, "chaos")
		case keyDelete:
			return some(primaries, "DEL", prefix+name)
		case voteDelete:
			l.random.Shuffle(len(primaries), func(i, j int) {
				primaries[i], primaries[j] = primaries[j], primaries[i]
			})
			return primaries[:min(minority, len(primaries))].tell("DEL", prefix+name)
		case connKill:
			return primaries.tell("CLIENT", "KILL", "TYPE", "normal")
		case pubsubKill:
			return primaries.tell("CLIENT", "KILL", "TYPE", "pubsub")
		case memoryFull:
			return l.forAWhile(primaries, pause, []string{"CONFIG", "SET", "maxmemory", "1"},
				[]string{"CONFIG", "SET", "maxmemory", "0"})
		case rightsGone:
			return l.forAWhile(primaries, pause, []string{"ACL", "SETUSER", "default", "-fcall"},
				[]string{"ACL", "SETUSER", "default", "+fcall"})
		case libReplace:
			return primaries.tell("FUNCTION", "LOAD", "REPLACE", l.servers.source)
		case libFlush:
			err := primaries.tell("FUNCTION", "FLUSH")
			l.rest(pause)
			return errors.Join(err, l.servers.load())
		}
		return nil
	})
}

// forAWhile sets something at the primaries, and back at all servers.
func (l *lane) forAWhile(primaries nodes, d time.Duration, set, back []string) error {
	err := primaries.tell(set...)
	l.rest(d)
	return errors.Join(err, l.servers.everywhere(back...))
}

// some is done when one server does it: the others do not have the slot.
func some(list nodes, command ...string) error {
	var errs []error
	for _, n := range list {
		errs = append(errs, tell(n, command...))
	}
	if slices.Contains(errs, nil) {
		return nil
	}
	return errors.Join(errs...)
}
