// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"slices"
	"strconv"
)

const (
	wrongType  Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	notInteger Error = "ERR value is not an integer or out of range"
	syntaxErr  Error = "ERR syntax error"
)

func init() {
	register(
		&spec{"HGET", 3, read, 1, onHash(func(c *call, h map[string]string) any { return field(h, c.args[1]) })},
		&spec{"HMGET", -3, read, 1, onHash(hmget)},
		&spec{"HGETALL", 2, read, 1, onHash(hgetall)},
		&spec{"HLEN", 2, read, 1, onHash(func(_ *call, h map[string]string) any { return len(h) })},
		&spec{"HSET", -4, write | denyOOM, 1, hset},
		&spec{"HDEL", -3, write, 1, onHash(hdel)},
	)
}

// onHash is a command on the hash at its first argument's key. There are no fields if there is none.
func onHash(run func(c *call, h map[string]string) any) func(*call) any {
	return func(c *call) any {
		e, err := c.entry("hash")
		switch {
		case err != "":
			return err
		case e == nil:
			return run(c, nil)
		}
		return run(c, e.hash)
	}
}

// entry returns the value at the first argument's key, which must be of a kind, or nil.
func (c *call) entry(kind string) (*entry, Error) {
	e := c.n.lookup(c.args[0])
	if e != nil && e.kind != kind {
		return nil, wrongType
	}
	return e, ""
}

func field(h map[string]string, name string) any {
	if v, ok := h[name]; ok {
		return v
	}
	return nil
}

func hmget(c *call, h map[string]string) any {
	out := make([]any, len(c.args)-1)
	for i, f := range c.args[1:] {
		out[i] = field(h, f)
	}
	return out
}

// hgetall gives the fields in the order of their names: Redis promises none.
func hgetall(_ *call, h map[string]string) any {
	out := pairs{}
	for _, f := range sortedKeys(h) {
		out = append(out, f, h[f])
	}
	return out
}

func hset(c *call) any {
	if len(c.args)%2 == 0 {
		return wrongNumber("hset")
	}
	return onHash(func(c *call, h map[string]string) any {
		c.n.edit(c.args[0])
		if h == nil {
			h = map[string]string{}
			c.n.keys[c.args[0]] = &entry{kind: "hash", hash: h}
		}
		before := len(h)
		for pair := range slices.Chunk(c.args[1:], 2) {
			h[pair[0]] = pair[1]
		}
		return len(h) - before
	})(c)
}

func hdel(c *call, h map[string]string) any {
	removed := 0
	for _, f := range c.args[1:] {
		if field(h, f) == nil {
			continue
		}
		if removed == 0 {
			c.n.edit(c.args[0])
		}
		removed++
		delete(h, f)
	}
	if removed > 0 && len(h) == 0 {
		delete(c.n.keys, c.args[0])
	}
	return removed
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
