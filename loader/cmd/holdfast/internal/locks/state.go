// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
)

// What the library packs into the field 'state' of a lock, and into 'w:<n>' of a waiter: doubles, and
// texts behind them. functions/README.md describes it.
const (
	lineNumbers  = 6 // head, tail, waiters, turn_us, top, expires
	moreNumbers  = 8 // holds, guard, kept, due, longest, broken, recorded, bytes of the reason: then that, owner
	entryNumbers = 4 // ttl, tokens, asked, minimum; then the bytes of holds and of the channel, 2 bytes each
	doubleBytes  = 8
	shared       = -functions.MaxHolders - 1 // in place of tokens; of one with a limit that, negative
)

// packed is a text that numbers are taken from, one after the other.
type packed struct {
	text string
	bad  bool // it ended too early, or a number is none that the library writes
}

func (p *packed) take(n int64) string {
	if n < 0 || n > int64(len(p.text)) {
		p.bad, n = true, 0
	}
	taken := p.text[:n]
	p.text = p.text[n:]
	return taken
}

func (p *packed) number(least float64) int64 {
	bytes := p.take(doubleBytes)
	if p.bad {
		return 0
	}
	n := math.Float64frombits(binary.LittleEndian.Uint64([]byte(bytes)))
	if !(n >= least && n <= 1<<53) { // also NaN
		p.bad = true
		return 0
	}
	return int64(n)
}

func (p *packed) short() int64 {
	bytes := p.take(2)
	if p.bad {
		return 0
	}
	return int64(binary.LittleEndian.Uint16([]byte(bytes)))
}

// state is what a lock has beside its holder.
type state struct {
	head, tail, waiters int64
	kept                int64 // ms: until when nobody else gets it
	broken, recorded    int64 // the token that was broken, and until when that is remembered, ms
	reason, victim      string
}

// parseState reports whether the text is a state. An absent one is: there is nothing.
func parseState(text string) (s state, ok bool) {
	if text == "" {
		return s, true
	}
	p := packed{text: text}
	var line [lineNumbers]int64
	for i := range line {
		line[i] = p.number(0)
	}
	s.head, s.tail, s.waiters = line[0], line[1], min(line[2], line[1]-line[0])
	if s.head > s.tail {
		return s, false
	}
	if p.text != "" {
		var more [moreNumbers]int64
		for i := range more {
			more[i] = p.number(0)
		}
		s.kept, s.broken, s.recorded = more[2], more[5], more[6]
		s.reason = p.take(more[7])
		s.victim = strings.TrimLeft(p.text, "\x00") // that stands for all of several
	}
	return s, !p.bad
}

// parseWaiter reads a place of the line. It is no waiter's if it is a gap, or was served meanwhile.
func parseWaiter(entry string, now time.Time) (Waiter, bool) {
	p := packed{text: entry}
	var numbers [entryNumbers]int64
	for i, least := range [entryNumbers]float64{1: shared} {
		numbers[i] = p.number(least)
	}
	holds, channel := p.short(), p.short()
	p.take(holds)
	w := Waiter{LeaseMS: numbers[0], AskedMS: max(0, now.UnixMilli()-numbers[2]), channel: p.take(channel), Wants: "alone"}
	if limit := -numbers[1]; limit == -shared {
		w.Wants = functions.WhyShared
	} else if limit > 0 {
		w.Wants = "limit " + strconv.FormatInt(limit, 10)
	}
	if p.bad || p.text == "" {
		return Waiter{}, false
	}
	owner := client.ParseHolder(p.text)
	w.Who = who(owner)
	if !owner.Since.IsZero() {
		since := owner.Since.UTC()
		w.Since = &since
	}
	return w, true
}

// remember adds to a lock what its key keeps and no call says: a minimum that its holder does not need
// yet, that there is a value, and the record of a break. Of a quorum it is what lasts longest.
func (v *View) remember(ctx context.Context, l *Lock, now time.Time) {
	for _, redis := range v.servers() {
		got, err := fields(ctx, redis, v.Key(l.Name), "owner", "state", "value")
		if err != nil {
			continue // who holds it is known all the same
		}
		s, _ := parseState(got[1])
		if until := time.UnixMilli(s.kept).UTC(); until.After(now) && (l.KeptUntil == nil || until.After(*l.KeptUntil)) {
			l.KeptUntil = &until
			if !l.Held {
				l.Who, l.RemainingMS = who(client.ParseHolder(got[0])), until.Sub(now).Milliseconds()
			}
		}
		l.HasValue = l.Kept() && got[2] != "" // which has a token in front
		if until := time.UnixMilli(s.recorded).UTC(); until.After(now) && (l.Broken == nil || until.After(l.Broken.Until)) {
			l.Broken = &Record{who(client.ParseHolder(s.victim)), s.broken, s.reason, until}
		}
	}
}

// control is what neither an owner nor a reason may have.
func control(r rune) bool { return r < ' ' || r == 0x7f }

// nameable reports whether a call can name an owner; the value of a plain string may be anything.
func nameable(owner string) bool {
	for _, b := range []byte(owner) {
		if control(rune(b)) {
			return false
		}
	}
	return owner != "" && len(owner) <= functions.MaxBytes
}
