package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/functions"
)

func channel(client int, live bool) string {
	if live {
		return "live" + strconv.Itoa(client)
	}
	return "dead" + strconv.Itoa(client)
}

func ownerName(o Owner) string {
	if o == 0 {
		return ""
	}
	return fmt.Sprintf("client%d.%d", o.client(), o.past())
}

// concrete is an edge in the library's terms, at one time of the server.
type concrete struct {
	*tied
	us, ms int64
	until  int64 // of the lock
	fence  int64 // of the lock
	variant
	hole bool // somebody left the middle of the line
}

// variant is one of the ways to make an edge concrete.
type variant struct {
	late bool // a tick's last millisecond, not its first
	void bool // an earlier call found that the lease had ended, and could not pass the lock on
}

// variants are all that make a difference.
func (x *tied) variants() []variant {
	if x.guard > 0 && x.lock.Owner != 0 && x.lock.Rem <= 0 && x.lock.waiters() > 0 {
		return []variant{{}, {late: true}, {void: true}}
	}
	return []variant{{}, {late: true}}
}

// token is a token of the model in microseconds.
func (c *concrete) token(t Token) int64 {
	now := int64(c.env.Now)
	switch {
	case t != 0 && t == c.lock.Fence:
		return c.fence
	case t == stale || t == 0:
		return c.fence - 1
	case c.coarse:
		return c.us + int64(t) - now
	case int64(t) > now: // a new one
		return c.us + int64(t) - now - 1
	}
	return c.us - 1000 + int64(t)
}

// since is a number of ticks in milliseconds, such that it tells silence from its opposite.
func since(ticks uint8, silence int8) int64 {
	switch {
	case int8(ticks) == silence:
		return silentMS
	case int8(ticks) > silence:
		return silentMS + 1
	}
	return int64(ticks) * tickMS
}

func concretize(cfg *Config, x *tied, us int64, v variant) *concrete {
	c := &concrete{tied: x, us: us, ms: us / 1000, variant: v}
	l := &x.lock
	if c.until = c.ms + tickMS*int64(l.Rem-1) + 1; v.late {
		c.until += tickMS - 1
	}
	if v.void || l.Rem <= 0 && l.waiters() == 0 {
		c.until = 0
	}
	switch {
	case x.coarse:
		c.fence = us + int64(l.Fence) - int64(x.env.Now)
	case l.Age > 0:
		c.fence = us - 1000*since(l.Age, cfg.Silence)
		if int8(l.Age) > cfg.Silence { // by a microsecond
			c.fence = us - 1000*silentMS - 1
		}
	default:
		c.fence = us - 1000 + int64(l.Fence)
	}
	c.hole = v.late && l.waiters() > 1 && l.Age == 0
	return c
}

func (c *concrete) channel(o Owner) string {
	if c.env.Pollers>>o.client()&1 != 0 {
		return ""
	}
	return channel(o.client(), c.env.Heard>>o.client()&1 != 0)
}

// key are the fields of the lock, as the library would have written them.
func (c *concrete) key(cfg *Config) map[string]string {
	l := &c.lock
	if l.Owner == 0 {
		return nil
	}
	fields := map[string]string{"owner": ownerName(l.Owner), "until": text(c.until), "fence": text(c.fence)}
	n, first, at := l.waiters(), int64(0), int64(0)
	if n > 0 {
		first, at = 7, 7
	}
	for i, w := range l.Line[:n] {
		if i == 1 && c.hole {
			at++
		}
		ch, asked := c.channel(w.Owner), c.ms-since(w.Age, cfg.Silence)
		fields["w:"+text(at)] = packed(tickMS*int64(cfg.Lease), 1, asked, 0) + string([]byte{0, 0, byte(len(ch)), 0}) + ch + ownerName(w.Owner)
		fields["at:"+ownerName(w.Owner)] = text(at)
		at++
	}
	if n > 0 || l.Holds != 0 || c.guard > 0 {
		fields["state"] = packed(first, at, int64(n), 0, c.fence, c.expires())
	}
	if l.Holds != 0 || c.guard > 0 {
		fields["state"] += packed(int64(count(l.Holds)), c.guardMS(), 0, 0, tickMS*int64(cfg.Lease), 0, 0, 0)
	}
	if l.Holds != 0 {
		fields["holds"] = strings.Join(holds(l.Holds), "")
	}
	return fields
}

// expires is when the key goes.
func (c *concrete) expires() int64 {
	switch {
	case c.void:
		return c.ms + lineMS - tickMS
	case c.lock.waiters() > 0:
		return c.until + lineMS
	case c.until == 0:
		return c.fence/1000 + 1
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

// unpacked are the first n numbers of a field.
func unpacked(field string, n int) (numbers []int64) {
	for i := range n {
		bits := binary.LittleEndian.Uint64([]byte(field[8*i:]))
		numbers = append(numbers, int64(math.Float64frombits(bits)))
	}
	return numbers
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// arguments are the words of a call. A function that gets more of them gets them here.
func (c *concrete) arguments(cfg *Config) []string {
	r := c.request
	words := []string{"", "1", tiedKey, ownerName(r.Owner)}
	ttl := text(tickMS * int64(cfg.Lease))
	add := func(more ...string) { words = append(words, more...) }
	switch r.Kind {
	case Acquire, Wait:
		words[0] = map[Kind]string{Acquire: functions.Acquire, Wait: functions.Wait}[r.Kind]
		if add(ttl); r.Hold != 0 {
			words[0] = functions.AcquireReentrant
			add(holdName(r.Hold))
		}
		if ch := c.channel(r.Owner); r.Kind == Wait && ch != "" {
			add(functions.OptChannel, ch)
		}
		if c.guard > 0 {
			add(functions.OptGuard, text(c.guardMS()))
		}
		return words
	case Renew, Raise:
		words[0] = functions.Renew
		if add(ttl); r.Fence != 0 {
			add(functions.OptFence, text(c.token(r.Fence)))
		}
		if r.Kind == Raise {
			add(functions.OptRaise, text(c.token(r.Raised)))
		}
	case Release:
		words[0] = functions.Release
	case Leave:
		if words[0] = functions.Leave; r.Fence != 0 {
			add(functions.OptFence, text(c.token(r.Fence)))
		}
	default: // the record of a break is not modelled
		return []string{functions.Break, "1", tiedKey, functions.OptForget}
	}
	if r.Hold != 0 {
		add(functions.OptHold, holdName(r.Hold))
	}
	return words
}

// after is the end of the lease that the call leaves.
func (c *concrete) after() int64 {
	if c.effect.Lease > 0 {
		return c.ms + tickMS*int64(c.effect.Lease) + 1
	}
	return c.until
}

// reply is what the model says that the library replies.
func (c *concrete) reply(cfg *Config) any {
	r, p := c.request, c.effect.Reply
	switch {
	case r.Kind == Break && p.Yes:
		return []any{int64(1), ownerName(p.Holder), c.token(p.Fence)}
	case r.Kind == Release && r.Hold != 0 && p.Yes:
		return []any{int64(1), int64(count(c.effect.Lock.Holds))}
	case (r.Kind == Release || r.Kind == Leave) && p.Yes:
		return int64(1)
	case r.Hold != 0 && r.Kind == Acquire && p.Yes:
		return []any{int64(1), c.token(p.Fence), int64(count(c.effect.Lock.Holds))}
	case p.Yes:
		return c.token(p.Fence)
	}
	left, why, l := int64(0), functions.WhyFree, &c.effect.Lock
	switch {
	case p.Holder != 0 && !p.Refused:
		left, why = c.after()-c.ms, functions.WhyHeld
	case c.closed():
		left, why = c.youth(), functions.WhySettling
	case l.waiters() > 0:
		why = functions.WhyServing
	}
	if r.Kind != Wait {
		return []any{int64(0), left, ownerName(p.Holder), int64(p.Waiters), why}
	}
	ch, fence := c.channel(r.Owner), int64(0)
	if p.Fence != 0 {
		fence = c.token(p.Fence)
	}
	return []any{int64(0), left, ownerName(p.Holder), int64(p.Waiters), why, c.ms + 1, fence, bit(strings.HasPrefix(ch, "live"))}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func holdName(bit uint8) string { return fmt.Sprintf("hold%d", bit) }

// holds are the ids of a joinable lock's holds, as netstrings.
func holds(all uint8) (ids []string) {
	for bit := uint8(1); bit != 0; bit <<= 1 {
		if id := holdName(bit); all&bit != 0 {
			ids = append(ids, fmt.Sprintf("%d:%s", len(id), id))
		}
	}
	return ids
}
