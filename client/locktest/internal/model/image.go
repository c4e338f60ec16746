// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// lockOf is the lock that a key says. What is not exactly what the model has words for is an error: a lease
// that ends within a tick, say.
func (c *concrete) lockOf(fields map[string]string, expires int64) (l Lock) {
	if fields == nil {
		return l
	}
	l = Lock{Owner: ownerOf(named(fields["owner"])), Fence: c.token(number(fields["fence"]))}
	until := number(fields["until"])
	same := l.Owner == c.lock.Owner && l.Fence == c.lock.Fence
	if l.Rem = c.ticks(until, same); same {
		l.Age = c.lock.Age
	}
	for bit := uint8(1); bit != 0; bit <<= 1 {
		if strings.Contains(fields["holds"], ":"+holdName(bit)) {
			l.Holds |= bit
		}
	}
	state := unpacked(fields["state"])
	if c.guard > 0 && (len(state) < 14 || state[7] != c.guardMS()) {
		c.fail("left the state %v without its guard", state)
	}
	if len(state) >= 6 {
		c.readLine(&l, fields, state[0], state[1])
	}
	l.Exp = c.endOf(&l, until, expires)
	return l
}

func (c *concrete) readLine(l *Lock, fields map[string]string, head, tail int64) {
	for n := head; n < tail; n++ {
		entry, there := fields["w:"+text(n)]
		if !there || entry[0] == '<' || entry[0] == '>' {
			continue
		}
		const fixed = 4*8 + 2 + 2
		w := Waiter{Owner: ownerOf(named(entry[fixed+int(entry[fixed-2]):]))}
		if asked := unpacked(entry[:fixed-4])[2]; asked != c.ms {
			w.Age = c.lock.Line[max(0, c.lock.find(w.Owner))].Age
			if asked != c.ms-c.since(w.Age) {
				c.fail("left a waiter that asked at %d", asked)
			}
		}
		l.Line[l.waiters()] = w
	}
}

// endOf is when a key goes: with its lease, or so much later as a line outlives that.
func (c *concrete) endOf(l *Lock, until, expires int64) int8 {
	end, slack, ticks := until, int64(0), l.Rem
	switch {
	case expires < 0, l.Rem == forever:
		return forever
	case l.waiters() > 0:
		if end, slack, ticks = end+lineMS, slackMS, l.Rem+line; until == 0 {
			end += c.ms
		}
	}
	switch {
	case expires < end-slack:
		return 0
	case expires > end+slack:
		c.fail("left a key that goes at %d, and not at %d", expires, end)
	}
	return ticks
}

// ticks is how many of them are left until the end of a lease. What of the same holder did not change, did not.
func (c *concrete) ticks(until int64, same bool) int8 {
	left := until - c.ms - 1
	switch {
	case until == 0:
		return 0
	case same && until == c.until:
		return c.lock.Rem
	case left > 100*c.tick:
		return forever
	case left <= 0 || left%c.tick != 0:
		c.fail("left a lease of %d ms", left)
	}
	return int8(left / c.tick)
}

// token is what the model calls a token.
func (c *concrete) token(fence int64) Token {
	switch {
	case fence == 0:
		return 0
	case fence == c.fence && c.lock.Owner != 0:
		return c.lock.Fence
	case fence < c.us:
		c.fail("gave the token %d", fence)
	}
	return nowToken + 1 + Token(fence-c.us)
}

// answer is a reply.
func (c *concrete) answer(reply any) (yes bool, fence Token) {
	k, tells := c.request.Kind, c.request.Kind != Release && c.request.Kind != Leave && c.request.Kind != Break
	switch r := reply.(type) {
	case int64:
		if yes = true; tells {
			fence = c.token(r)
		}
	case []any:
		if yes = r[0] == int64(1); yes && tells {
			fence = c.token(r[1].(int64))
		} else if !yes && k == Wait {
			fence = c.token(r[6].(int64))
		}
	default:
		c.fail("replied %v", reply)
	}
	return yes, fence
}

func number(field string) int64 {
	n, _ := strconv.ParseInt(field, 10, 64)
	return n
}

// named are the client and the acquisition that an owner string is of.
func named(name string) (client int, past uint8) { return int(name[6] - '0'), name[8] - '0' }

// unpacked are the numbers of a field.
func unpacked(field string) (numbers []int64) {
	for ; len(field) >= 8; field = field[8:] {
		numbers = append(numbers, int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(field)))))
	}
	return numbers
}
