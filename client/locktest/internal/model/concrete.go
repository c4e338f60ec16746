// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/functions"
)

// key is the lock that calls are made on.
const key = "lock:tied"

// The library's own times, in milliseconds.
const (
	lineMS  = 60_000
	slackMS = 20_000 // a line's bound is not written anew for less
)

// concrete is an edge in the library's terms, at one time of the server.
type concrete struct {
	*edge
	tick, us, ms int64
	until, fence int64 // of the lock
	moment
}

// moment is one of the ways to make an edge concrete.
type moment struct {
	late bool // a tick's last millisecond, not its first
	void bool // an earlier call found that the lease had ended, and could not pass the lock on
}

// moments are all that could make a difference.
func (x *edge) moments() []moment {
	if x.guard > 0 && x.lock.Owner != 0 && x.lock.Rem <= 0 && x.lock.waiters() > 0 {
		return []moment{{}, {late: true}, {void: true}}
	}
	return []moment{{}, {late: true}}
}

func concretize(x *edge, us int64, m moment) *concrete {
	c, l := &concrete{edge: x, us: us, ms: us / 1000, moment: m}, &x.lock
	c.tick = functions.ProvisionalTTL / int64(x.provisional)
	if c.until = c.ms + c.tick*int64(l.Rem-1) + 1; m.late {
		c.until += c.tick - 1
	}
	if m.void || l.Rem <= 0 && l.waiters() == 0 {
		c.until = 0
	}
	switch {
	case l.Age > 0:
		c.fence = us - 1000*c.since(l.Age)
		if int8(l.Age) > x.silence { // by a microsecond
			c.fence = us - 1000*functions.PollTTL - 1
		}
	default:
		c.fence = us - 1
	}
	return c
}

// since is a number of ticks in milliseconds, such that it tells silence from its opposite.
func (c *concrete) since(ticks uint8) int64 {
	switch {
	case int8(ticks) == c.silence:
		return functions.PollTTL
	case int8(ticks) > c.silence:
		return functions.PollTTL + 1
	}
	return int64(ticks) * c.tick
}

// guardMS is the guard of the lock.
func (c *concrete) guardMS() int64 { return c.tick * int64(c.guard) }

func channel(client int, live bool) string {
	if live {
		return "live" + strconv.Itoa(client)
	}
	return "dead" + strconv.Itoa(client)
}

func (c *concrete) channel(o Owner) string {
	if c.env.Pollers>>o.client()&1 != 0 {
		return ""
	}
	return channel(o.client(), c.env.Heard>>o.client()&1 != 0)
}

func ownerName(o Owner) string {
	if o == 0 {
		return ""
	}
	return fmt.Sprintf("client%d.%d", o.client(), o.past())
}

func holdName(bit uint8) string { return fmt.Sprintf("hold%d", bit) }

// key are the fields of the lock, as the library would have written them.
func (c *concrete) key() (fields []string) {
	l := &c.lock
	if l.Owner == 0 {
		return nil
	}
	fields = []string{"owner", ownerName(l.Owner), "until", text(c.until), "fence", text(c.fence)}
	n, at := int64(l.waiters()), int64(0)
	for i, w := range l.Line[:n] {
		if i == 1 && c.late && l.Age == 0 { // somebody left the middle of the line
			at++
		}
		ch, asked, name := c.channel(w.Owner), c.ms-c.since(w.Age), ownerName(w.Owner)
		entry := packed(c.tick*int64(c.lease), 1, asked, 0) + string([]byte{0, 0, byte(len(ch)), 0}) + ch + name
		fields = append(fields, "w:"+text(at), entry, "at:"+name, text(at))
		at++
	}
	if n == 0 && l.Holds == 0 && c.guard == 0 {
		return fields
	}
	state := packed(0, at, n, 0, c.fence, c.expires())
	holds, ids := int64(0), ""
	for bit := uint8(1); bit != 0; bit <<= 1 {
		if id := holdName(bit); l.Holds&bit != 0 {
			holds, ids = holds+1, ids+fmt.Sprintf("%d:%s", len(id), id)
		}
	}
	if holds > 0 || c.guard > 0 {
		state += packed(holds, c.guardMS(), 0, 0, c.tick*int64(c.lease), 0, 0, 0)
	}
	if fields = append(fields, "state", state); holds > 0 {
		fields = append(fields, "holds", ids)
	}
	return fields
}

// expires is when the key goes.
func (c *concrete) expires() int64 {
	switch {
	case c.void:
		return c.ms + lineMS - c.tick
	case c.lock.waiters() > 0:
		return c.until + lineMS
	}
	return c.until
}

// packed are numbers as the library keeps them.
func packed(numbers ...int64) string {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
	}
	return string(b)
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// arguments are the words of a call. The record of a break is not modelled.
func (c *concrete) arguments() []string {
	r := c.request
	if r.Kind == Break {
		return []string{functions.Break, "1", key, functions.OptForget}
	}
	function := map[Kind]string{Acquire: functions.Acquire, Wait: functions.Wait, Renew: functions.Renew,
		Release: functions.Release, Leave: functions.Leave}[r.Kind]
	words := []string{function, "1", key, ownerName(r.Owner)}
	add := func(more ...string) { words = append(words, more...) }
	takes := r.Kind == Acquire || r.Kind == Wait
	if takes || r.Kind == Renew {
		add(text(c.tick * int64(c.lease)))
	}
	if r.Hold != 0 && r.Kind == Acquire {
		words[0] = functions.AcquireReentrant
		add(holdName(r.Hold))
	} else if r.Hold != 0 {
		add(functions.OptHold, holdName(r.Hold))
	}
	if ch := c.channel(r.Owner); r.Kind == Wait && ch != "" {
		add(functions.OptChannel, ch)
	}
	if takes && c.guard > 0 {
		add(functions.OptGuard, text(c.guardMS()))
	}
	if r.Fence != 0 {
		fence := c.fence - 1 // a stale one
		if r.Fence == c.lock.Fence {
			fence = c.fence
		}
		add(functions.OptFence, text(fence))
	}
	return words
}

// fail ends the exploration: the library did what the model has no words for.
func (c *concrete) fail(format string, args ...any) {
	panic(fmt.Sprintf("model: %q at %d us on %q: ", c.arguments(), c.us, strings.Join(c.key(), " ")) +
		fmt.Sprintf(format, args...))
}
