package model

import (
	"fmt"
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
	if c.until = c.ms + tickMS*int64(l.Rem-1); v.late {
		c.until += tickMS - 1
	}
	if v.void {
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
	n := l.waiters()
	if n == 0 {
		if l.Holds != 0 {
			fields["state"] = fmt.Sprintf("0 0 0 0 %d %d", c.fence, count(l.Holds)) + c.guardText()
			fields["holds"] = strings.Join(holds(l.Holds), "")
		} else if c.guard > 0 {
			fields["state"] = fmt.Sprintf("0 0 0 0 %d 0", c.fence) + c.guardText()
		}
		return fields
	}
	at := int64(7)
	for i, w := range l.Line[:n] {
		if i == 1 && c.hole {
			at++
		}
		ch, asked := c.channel(w.Owner), c.ms-since(w.Age, cfg.Silence)
		fields["w:"+text(at)] = fmt.Sprintf("%d 1 %d 0 %d %s%s", tickMS*int64(cfg.Lease), asked, len(ch), ch, ownerName(w.Owner))
		fields["at:"+ownerName(w.Owner)] = text(at)
		at++
	}
	fields["state"] = fmt.Sprintf("7 %d %d 0 %d 0", at, n, c.fence) + c.guardText()
	return fields
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// arguments are the words of a call. A function that gets more of them gets them here.
func (c *concrete) arguments(cfg *Config) []string {
	r := c.request
	ttl := text(tickMS * int64(cfg.Lease))
	switch {
	case r.Kind == Acquire && r.Hold != 0:
		words := []string{functions.AcquireReentrant, "1", tiedKey, ownerName(r.Owner), ttl, holdName(r.Hold)}
		return append(words, text(c.guardMS()))
	case r.Kind == Renew && r.Hold != 0:
		return []string{functions.Renew, "1", tiedKey, ownerName(r.Owner), ttl, "", text(c.token(r.Fence)), holdName(r.Hold)}
	case r.Kind == Release && r.Hold != 0:
		return []string{functions.Release, "1", tiedKey, ownerName(r.Owner), holdName(r.Hold)}
	}
	switch r.Kind {
	case Acquire:
		words := []string{functions.Acquire, "1", tiedKey, ownerName(r.Owner), ttl}
		if c.guard > 0 {
			words = append(words, "1", text(c.guardMS()))
		}
		return words
	case Wait:
		words := []string{functions.Wait, "1", tiedKey, ownerName(r.Owner), ttl, c.channel(r.Owner)}
		if c.guard > 0 {
			words = append(words, "1", "31536000000", "", text(c.guardMS()))
		}
		return words
	case Renew:
		if r.Fence == 0 {
			return []string{functions.Renew, "1", tiedKey, ownerName(r.Owner), ttl}
		}
		return []string{functions.Renew, "1", tiedKey, ownerName(r.Owner), ttl, "", text(c.token(r.Fence))}
	case Raise:
		return []string{functions.Raise, "1", tiedKey, ownerName(r.Owner), ttl, text(c.token(r.Raised))}
	case Release:
		return []string{functions.Release, "1", tiedKey, ownerName(r.Owner)}
	case Leave:
		if r.Fence == 0 {
			return []string{functions.Leave, "1", tiedKey, ownerName(r.Owner)}
		}
		return []string{functions.Leave, "1", tiedKey, ownerName(r.Owner), "", text(c.token(r.Fence))}
	}
	return []string{functions.Break, "1", tiedKey}
}

// after is the end of the lease that the call leaves.
func (c *concrete) after() int64 {
	if c.effect.Lease > 0 {
		return c.ms + tickMS*int64(c.effect.Lease)
	}
	return c.until
}

// reply is what the model says that the library replies.
func (c *concrete) reply(cfg *Config) []any {
	r, p := c.request, c.effect.Reply
	left := int64(0)
	switch {
	case p.Holder != 0 && !p.Refused:
		left = c.after() - c.ms
	case c.closed():
		left = c.youth()
	}
	switch {
	case r.Kind == Leave:
		return []any{bit(p.Yes)}
	case r.Kind == Release && p.Yes:
		return []any{int64(1), int64(count(c.effect.Lock.Holds))}
	case r.Kind == Break && p.Yes:
		return []any{int64(1), ownerName(p.Holder), c.token(p.Fence)}
	case r.Kind == Break:
		return []any{int64(0), "", int64(0)}
	case p.Yes:
		n := max(1, count(c.effect.Lock.Holds))
		return []any{int64(1), c.token(p.Fence), tickMS * int64(cfg.Lease), int64(n), int64(1)}
	case r.Kind == Wait:
		ch := c.channel(r.Owner)
		hears := bit(strings.HasPrefix(ch, "live"))
		fence := int64(0)
		if !p.Refused {
			fence = c.token(p.Fence)
		}
		return []any{int64(0), left, ownerName(p.Holder), int64(p.Waiters), c.ms, fence, hears}
	}
	return []any{int64(0), left, ownerName(p.Holder), int64(p.Waiters)}
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
