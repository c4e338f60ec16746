// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"strconv"
	"strings"
)

func init() {
	register(
		&spec{"GET", 2, read, 1, onText(get)},
		&spec{"GETRANGE", 4, read, 1, getrange},
		&spec{"SET", -3, write | denyOOM, 1, set},
	)
}

// integer reads a number as Redis does: there is one way to write each.
func integer(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && itoa(n) != text {
		err = strconv.ErrSyntax
	}
	return n, err
}

// onText is a command on the string at its first argument's key, nil if there is none.
func onText(run func(c *call, e *entry) any) func(*call) any {
	return func(c *call) any {
		e, err := c.entry("string")
		if err != "" {
			return err
		}
		return run(c, e)
	}
}

func get(_ *call, e *entry) any {
	if e == nil {
		return nil
	}
	return e.str
}

func (e *entry) text() string {
	if e == nil {
		return ""
	}
	return e.str
}

func getrange(c *call) any {
	from, bad := integer(c.args[1])
	to, bad2 := integer(c.args[2])
	if bad != nil || bad2 != nil {
		return notInteger
	}
	return onText(func(_ *call, e *entry) any {
		v, nothing := e.text(), from < 0 && to < from
		size := int64(len(v))
		if from < 0 {
			from = max(0, size+from)
		}
		if to < 0 {
			to = max(0, size+to)
		}
		if to = min(to, size-1); from > to || nothing {
			return ""
		}
		return v[from : to+1]
	})(c)
}

// expiry reads a time of SET's or PEXPIRE's kind: relative (PX) or absolute (PXAT).
func (c *call) expiry(text, word, command string) (int64, Error) {
	v, bad := integer(text)
	if bad != nil {
		return 0, notInteger
	}
	base := int64(0)
	if word == "PX" {
		base = c.n.stepUS() / 1000
	}
	if command == "set" && v <= 0 || v > 1<<62-base && word == "PX" {
		return 0, Error("ERR invalid expire time in '" + command + "' command")
	}
	return v + base, ""
}

func set(c *call) any {
	key, value, e := c.args[0], c.args[1], c.n.lookup(c.args[0])
	end, fresh := int64(0), false // ms; 0: none
	for i := 2; i < len(c.args); i++ {
		switch word := strings.ToUpper(c.args[i]); word {
		case "NX":
			fresh = true
		case "PX", "PXAT":
			i++
			if i == len(c.args) || end != 0 {
				return syntaxErr
			}
			var err Error
			if end, err = c.expiry(c.args[i], word, "set"); err != "" {
				return err
			}
		default:
			return c.n.world.unmodelled(c.n, "SET "+word)
		}
	}
	if fresh && e != nil {
		return nil
	}
	if end != 0 && end <= c.n.nowMS() && c.n.world.opt.Flavour == Valkey {
		if e != nil { // the others keep it until it is looked at
			c.n.edit(key)
			delete(c.n.keys, key)
		}
		return Status("OK")
	}
	c.n.edit(key)
	e = &entry{kind: "string", str: value}
	c.n.keys[key] = e
	c.n.setEnd(e, end)
	return Status("OK")
}
