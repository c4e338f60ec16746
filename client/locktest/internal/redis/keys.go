// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"strings"
)

func init() {
	register(
		&spec{"DEL", -2, write, -1, del},
		&spec{"UNLINK", -2, write, -1, del},
		&spec{"EXISTS", -2, read, -1, exists},
		&spec{"TYPE", 2, read, 1, typeOf},
		&spec{"PTTL", 2, read, 1, func(c *call) any { return c.ttl(false) }},
		&spec{"PEXPIRETIME", 2, read, 1, func(c *call) any { return c.ttl(true) }},
		&spec{"PEXPIRE", -3, write, 1, func(c *call) any { return c.expire("PX", "pexpire") }},
		&spec{"PEXPIREAT", -3, write, 1, func(c *call) any { return c.expire("PXAT", "pexpireat") }},
		&spec{"DBSIZE", 1, 0, 0, func(c *call) any { return len(c.n.keys) }},
		&spec{"FLUSHALL", -1, write, 0, flush},
		&spec{"TIME", 1, always, 0, tellTime},
	)
}

func del(c *call) any {
	removed := 0
	for _, key := range c.args {
		if c.n.lookup(key) != nil {
			c.n.edit(key)
			delete(c.n.keys, key)
			removed++
		}
	}
	return removed
}

func exists(c *call) any {
	found := 0
	for _, key := range c.args {
		found += oneIf(c.n.lookup(key) != nil)
	}
	return found
}

func typeOf(c *call) any {
	if e := c.n.lookup(c.args[0]); e != nil {
		return Status(e.kind)
	}
	return Status("none")
}

func (c *call) ttl(absolute bool) any {
	e := c.n.lookup(c.args[0])
	switch {
	case e == nil:
		return -2
	case e.end == 0:
		return -1
	case absolute:
		return e.end
	}
	return max(0, e.end-c.n.readUS()/1000)
}

func (c *call) expire(word, command string) any {
	end, err := c.expiry(c.args[1], word, command)
	if err != "" {
		return err
	}
	if len(c.args) > 2 {
		return c.n.world.unmodelled(c.n, strings.ToUpper(command)+" "+c.args[2])
	}
	e := c.n.lookup(c.args[0])
	if e == nil {
		return 0
	}
	c.n.edit(c.args[0])
	now := c.n.readUS()
	if word == "PXAT" {
		now = c.n.stepUS()
	}
	if end <= now/1000 { // a time that is over deletes at once
		delete(c.n.keys, c.args[0])
		return 1
	}
	c.n.setEnd(e, end)
	return 1
}

func flush(c *call) any {
	c.n.invalidateAll() // first: nobody is told of the keys one by one
	for _, key := range sortedKeys(c.n.keys) {
		c.n.edit(key)
	}
	c.n.keys = map[string]*entry{}
	return Status("OK")
}

func tellTime(c *call) any {
	us := c.n.stepUS()
	return []any{itoa(us / 1e6), itoa(us % 1e6)}
}

// stepUS is the time that TIME says and that relative expiry counts from. In functions of Redis 7.0
// it goes on.
func (n *Node) stepUS() int64 {
	if n.running != nil && n.world.opt.Flavour == Redis70 {
		return n.clock.step(n.world.opt.Step)
	}
	return n.frozenUS
}

// readUS is the same without letting time go on.
func (n *Node) readUS() int64 {
	if n.running != nil && n.world.opt.Flavour == Redis70 {
		return n.clock.us()
	}
	return n.frozenUS
}
