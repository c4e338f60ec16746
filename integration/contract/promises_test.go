// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// promises are what the model does not show, because it takes time, a clock that is set back, tokens
// that are ahead of it, a memory of some age, or the hands of others.
var promises = map[string]func(b *bed, k string){
	"a renewal sets the expiry that it grants": renewalSetsExpiry,
	"a token ahead of the clock is remembered": tokenAheadIsRemembered,
	"a run ends with what was used of it":      runEnds,
	"runs are given from the clock only":       runsFromTheClock,
	"a run outlives a clock that was set back": runOutlivesTheClock,
	"a lease is no longer than was asked for":  leaseIsCapped,
	"a minimum counts from the grant":          minimumCountsFromTheGrant,
	"a record has its time":                    recordHasItsTime,
	"who leaves for a while hears of its turn": leaveIsTold,
	"the next in line hears of a minimum":      minimumIsTold,
	"bounded waiting by measured turns":        measuredTurns,
	"the next in line hears of long turns":     longTurns,
	"a grant names a key of bounded length":    grantNamesItsLock,
	"big fields are read once":                 bigFields,
	"a run is told to the last in line":        handOverToARun,
	"an ended lease is settled first":          endedLeaseIsSettled,
	"a refused publish goes on to the next":    refusedPublish,
	"marks only point forward":                 marksPointForward,
	"a join sweeps the head":                   sweepsHead,
	"a thousand share it":                      thousandShare,
	"a dead waiter keeps nobody out":           deadHead,
	"who is behind a hundred hears of it":      behindHundred,
	"leases end each at its time":              leasesEnd,
	"100 leases end by a call":                 manyLeasesEnd,
	"a crowd is only what it says":             slotOfAnother,
	"300 are told of a value":                  valueIsTold,
	"a value has its time":                     valueHasItsTime,
	"a value is only what it says":             valueOfAnother,

	"a young memory grants nothing guarded":      guarded(youngMemory),
	"a guarded lock is taken straight down":      guarded(straightDown),
	"a pause begins with the first guarded call": guarded(pauseBegins),
	"a lock keeps the longest guard":             guarded(longestGuard),
}

func TestPromises(t *testing.T) {
	for name, promise := range promises {
		t.Run(name, func(t *testing.T) {
			each(t, func(_ *testing.T, b *bed) { promise(b, b.key("k")) }, server.Owned())
		})
	}
}

func (b *bed) pause(ms int64) {
	b.tb.Helper()
	from := b.serverMS()
	eventually(b.tb, "time passes", func() bool { return b.serverMS() > from+ms })
}

// one runs the same commands in a transaction, and so in one millisecond.
func (b *bed) one(commands ...[]string) []any {
	b.tb.Helper()
	b.c.do("MULTI")
	for _, c := range commands {
		b.c.do(c...)
	}
	return b.c.do("EXEC").([]any)
}

func renewalSetsExpiry(b *bed, k string) {
	for i, more := range [][]string{nil, {functions.OptGuard, "20000"}, nil} { // the last time by a repeat
		renew := []string{"FCALL", []string{functions.Renew, functions.Acquire}[i/2], "1", k, "a", "20000"}
		b.age()
		b.take(k, "a", "20000", more...)
		for _, hand := range [][]string{{"PERSIST", k}, {"PEXPIRE", k, "1000"}} {
			for range 20 {
				got := b.one(renew, hand, renew, []string{"PTTL", k})
				want(b.tb, got[3], between{15_000, 25_000}) // PTTL is asked of the clock of EXEC
			}
		}
		b.call(functions.Release, k, "a")
	}
	b.load()
}

// A clock that was set back lets a lease end late. The next renewal mends that, but for a plain
// lock.
func leaseIsCapped(b *bed, k string) {
	want(b.tb, b.call(functions.AcquireReentrant, k, "a", "30000", "h"), []any{1, token, 1})
	b.call(functions.AcquireReentrant, k, "a", "20000", "i")
	for _, ttl := range []string{"30000", "10000"} {
		b.c.do("HSET", k, "until", itoa(b.serverMS()+104_000))
		want(b.tb, b.call(functions.Renew, k, "a", ttl), token)
		want(b.tb, b.c.do("PTTL", k), between{25_000, 30_001})
	}
}

func minimumCountsFromTheGrant(b *bed, k string) {
	ch := b.key("channel")
	b.subscribe(ch)
	for i, confirm := range []string{functions.Renew, functions.Renew, functions.Acquire} {
		b.take(k, "a", long)
		want(b.tb, b.call(functions.Wait, k, "b", long, "MINHOLD", "10000", functions.OptChannel, ch).([]any)[3], 1)
		want(b.tb, b.call(functions.Release, k, "a"), 1)
		b.pause(200)
		want(b.tb, b.call(confirm, k, "b", "5000"), token)
		if i == 0 {
			want(b.tb, b.call(functions.Release, k, "b"), 1)
		} else {
			b.end(k)
		}
		want(b.tb, b.call(functions.Wait, k, "c", long, "MAXWAIT", "9"), []any{0, between{1, 9800}, "b", -1, functions.WhyKept, serverMS, token, 0})
		want(b.tb, b.call(functions.Break, k, functions.OptOwner, "c"), []any{0, between{1, 9800}, "b", 0, functions.WhyKept})
		b.c.do("DEL", k)
	}
}

// One that gives up a hold, and waits for another, is told of a lock that it got by that.
func leaveIsTold(b *bed, k string) {
	ch := b.key("channel")
	sub := b.subscribe(ch)
	b.take(k, "a", long)
	for _, hold := range []string{"g", "h"} {
		want(b.tb, b.call(functions.Wait, k, "b", long, functions.OptHold, hold, functions.OptChannel, ch), inLine("a", 1))
	}
	want(b.tb, b.call(functions.Wait, k, "b", long, functions.OptChannel, ch), hfjoin)
	for _, other := range [][]string{{"b"}, {"b", functions.OptHold, "i"}} {
		want(b.tb, b.call(functions.Leave, k, other...), busy("a", 1))
	}
	b.end(k)
	want(b.tb, b.call(functions.Leave, k, "b", functions.OptHold, "g"), 1)
	sub.send("PING") // the answer comes after all messages
	want(b.tb, grant(b.tb, sub.message()).owner, "b")
}

func recordHasItsTime(b *bed, k string) {
	for ttl, lasts := range map[string]between{"5000": {6000, 10_000}, "30000": {25_000, 30_001}, "3600000": {590_000, 600_000}} {
		for owner, more := range map[string][]string{"a": nil, "": {functions.OptLimit, "2"}} {
			b.take(k, "a", ttl, more...)
			want(b.tb, b.call(functions.Break, k), []any{1, owner, token})
			want(b.tb, b.c.do("PTTL", k), lasts)
			want(b.tb, b.c.do("SET", k, "x", "NX"), nil)
			want(b.tb, b.call(functions.Break, k, "FORGET"), []any{1, owner, token})
			b.expectFree(k)
		}
	}
}

func measuredTurns(b *bed, k string) {
	for _, kind := range [][]string{nil, {functions.OptLimit, "1"}} {
		wait := func(owner, most string) any {
			return b.call(functions.Wait, k, append([]string{owner, long, "MAXWAIT", most}, kind...)...).([]any)[3]
		}
		b.take(k, "a", long, kind...)
		want(b.tb, wait("b", "1"), 1) // nothing is known yet
		want(b.tb, wait("c", long), 2)
		b.pause(30)
		want(b.tb, b.call(functions.Release, k, "a"), 1)
		want(b.tb, wait("d", "50"), -2)
		want(b.tb, wait("c", "1"), 1) // in line already
		want(b.tb, wait("d", long), 2)
		b.c.do("DEL", k)
	}
	fence := b.take(k, "a", long) - 3_600_000_000
	b.wait(k, "b", "", 1)
	b.c.do("HSET", k, "fence", itoa(fence), "until", itoa(fence/1000+10)) // that nobody called since is no turn
	want(b.tb, b.call(functions.Wait, k, "c", long, "MAXWAIT", "1000").([]any)[3], 1)
}

// Who waits behind a holder asks seldom. When a minimum follows the holder, it hears when to ask.
func minimumIsTold(b *bed, k string) {
	first, next := b.subscribe(k+":first"), b.subscribe(k+":next")
	for _, more := range [][]string{nil, {functions.OptLimit, "1"}} {
		b.take(k, "a", long, append(more, functions.OptMinHold, long)...)
		for i, owner := range []string{"b", "c"} {
			args := append([]string{owner, long, functions.OptChannel, k + []string{":first", ":next"}[i]}, more...)
			want(b.tb, b.call(functions.Wait, k, args...).([]any)[3], i+1)
		}
		want(b.tb, b.call(functions.Release, k, "a"), 1)
		want(b.tb, first.message(), "look b")
		next.silent()
		want(b.tb, b.call(functions.Leave, k, "b"), 1)
		want(b.tb, next.message(), "look c")
		b.c.do("DEL", k)
	}
}

// Where turns are long waiters ask seldom. So the next one is told to, whatever hole is before it, in
// case the one that has the lock now is dead.
func longTurns(b *bed, k string) {
	channels := []string{b.key("first"), b.key("next")}
	subs := []*conn{b.subscribe(channels[0]), b.subscribe(channels[1])}
	for turn, last := range map[float64]int64{2_000_000: 0, 500_000: 0, 500_001: 2_000_000} {
		for _, how := range []string{functions.Release, functions.Break, functions.Inspect, "polls"} {
			fence := b.take(k, "a", long) - last
			if how == "polls" { // it hears of nothing, and the next one does all the same
				b.call(functions.Wait, k, "b", long)
			} else {
				b.wait(k, "b", channels[0], 1)
			}
			b.wait(k, "gone", channels[0], 2)
			b.wait(k, "c", channels[1], 3)
			b.wait(k, "d", channels[1], 4)
			b.call(functions.Leave, k, "gone")
			state := b.c.do("HGET", k, "state").(string)
			b.c.do("HSET", k, "fence", fmt.Sprint(fence), "state", state[:24]+doubles(turn)+state[32:])
			switch how {
			case functions.Break:
				b.call(how, k)
			case functions.Inspect: // the lease ends, and somebody asks
				b.c.do("HSET", k, "until", fmt.Sprint((fence+last)/1000))
				b.call(functions.Acquire, k, "e", long)
			default:
				b.call(functions.Release, k, "a")
			}
			if how != "polls" {
				want(b.tb, grant(b.tb, subs[0].message()).owner, "b")
			}
			subs[0].silent()
			heard := subs[1].do("PING") // what it was told comes before the answer
			if max(turn, float64(last)) > 1_000_000 {
				want(b.tb, heard, []any{"smessage", channels[1], "look c"})
				heard = subs[1].receive(ioWithin)
			}
			want(b.tb, heard, []any{"pong", ""})
			b.c.do("DEL", k)
		}
	}
}

func grantNamesItsLock(b *bed, k string) {
	ch := b.key("channel")
	sub := b.subscribe(ch)
	for _, name := range []string{k, k + strings.Repeat("k", functions.MaxBytes-len(k)), k + strings.Repeat("k", functions.MaxBytes)} {
		b.take(name, "a", long)
		reply := b.call(functions.Wait, name, "b c", "700", functions.OptChannel, ch).([]any)
		want(b.tb, b.c.do("HGET", name, "until"), itoa(reply[1].(int64)+reply[5].(int64)-1)) // server_ms is never behind
		want(b.tb, b.call(functions.Release, name, "a"), 1)
		told := grant(b.tb, sub.message())
		want(b.tb, told.owner, "b c")
		if len(name) > functions.MaxBytes {
			name = ""
		}
		want(b.tb, told.key, name)
		want(b.tb, told.until-reply[5].(int64), between{700, 5700}) // a bound by the server's clock
		b.c.do("DEL", name)
	}
}

// A call reads a field that somebody made large as often as it reads any, and answers none.
func bigFields(b *bed, k string) {
	big := strings.Repeat("9", 4<<20)
	for _, field := range []string{"owner", "until", "fence", "state", "holds", "channel", "w:0", "at:b", "crowd", "h:1", "at:a"} {
		b.c.do("DEL", k)
		if field == "crowd" || field == "h:1" || field == "at:a" {
			b.call(functions.Acquire, k, "a", long, functions.OptShared)
		} else {
			b.call(functions.AcquireReentrant, k, "a", long, "h")
		}
		b.call(functions.Wait, k, "b", long)
		b.c.do("HSET", k, field, big)
		for _, call := range [][]string{{functions.Acquire, "b", long}, {functions.Renew, "a", long}, {functions.Wait, "b", long},
			{functions.Wait, "b", long, functions.OptChannel, k}, {functions.Release, "a", "HOLD", "h"}, {functions.Leave, "b"}, {functions.Inspect}, {functions.Holders}, {functions.Break}} {
			if got := fmt.Sprint(b.call(call[0], k, call[1:]...)); len(got) > 4096 {
				b.tb.Fatalf("%s with a large %s replied %d bytes", call[0], field, len(got))
			}
		}
	}
	b.c.do("DEL", k)
}

// Who releases or renews too late hears it, and the line is served all the same.
func endedLeaseIsSettled(b *bed, k string) {
	ch := b.key("channel")
	sub := b.subscribe(ch)
	for _, late := range [][]string{{functions.Release, "a"}, {functions.Renew, "a", long}} {
		b.take(k, "a", long)
		b.wait(k, "b", ch, 1)
		b.end(k)
		want(b.tb, b.call(late[0], k, late[1:]...), []any{0, between{1, 2001}, "b", 0, functions.WhyHeld})
		want(b.tb, grant(b.tb, sub.message()).owner, "b")
		b.call(functions.Release, k, "b")
	}
}
