package redis

import (
	"strconv"
	"strings"
)

func init() {
	register(
		&spec{"GET", 2, read, 1, 1, 1, get},
		&spec{"GETRANGE", 4, read, 1, 1, 1, getrange},
		&spec{"STRLEN", 2, read, 1, 1, 1, strlen},
		&spec{"SET", -3, write | denyOOM, 1, 1, 1, set},
		&spec{"INCR", 2, write | denyOOM, 1, 1, 1, incr},
		&spec{"APPEND", 3, write | denyOOM, 1, 1, 1, appendText},
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

// text returns the string at the first argument's key.
func (c *call) text() (string, bool, Error) {
	e, err := c.entry("string")
	if e == nil {
		return "", false, err
	}
	return e.str, true, ""
}

func get(c *call) any {
	v, ok, err := c.text()
	switch {
	case err != "":
		return err
	case !ok:
		return nil
	}
	return v
}

func strlen(c *call) any {
	v, _, err := c.text()
	if err != "" {
		return err
	}
	return len(v)
}

func getrange(c *call) any {
	from, bad := integer(c.args[1])
	to, bad2 := integer(c.args[2])
	if bad != nil || bad2 != nil {
		return notInteger
	}
	v, _, err := c.text()
	if err != "" {
		return err
	}
	size, nothing := int64(len(v)), from < 0 && to < from
	if from < 0 {
		from = max(0, size+from)
	}
	if to < 0 {
		to = max(0, size+to)
	}
	to = min(to, size-1)
	if from > to || size == 0 || nothing {
		return ""
	}
	return v[from : to+1]
}

// setOptions is how SET may be asked for.
type setOptions struct {
	nx, xx, get, keep bool
	end               int64 // ms; 0: none
}

func (c *call) setOptions() (o setOptions, err Error) {
	for i := 2; i < len(c.args); i++ {
		switch word := strings.ToUpper(c.args[i]); word {
		case "NX":
			o.nx = true
		case "XX":
			o.xx = true
		case "GET":
			o.get = true
		case "KEEPTTL":
			o.keep = true
		case "PX", "PXAT":
			i++
			if i == len(c.args) || o.end != 0 {
				return o, syntaxErr
			}
			if o.end, err = c.expiry(c.args[i], word, "set"); err != "" {
				return o, err
			}
		default:
			return o, syntaxErr
		}
	}
	if o.nx && o.xx || o.keep && o.end != 0 {
		return o, syntaxErr
	}
	return o, ""
}

// expiry reads a time of SET's or PEXPIRE's kind: relative or absolute (AT).
func (c *call) expiry(text, word, command string) (int64, Error) {
	v, bad := integer(text)
	if bad != nil {
		return 0, notInteger
	}
	invalid := Error("ERR invalid expire time in '" + command + "' command")
	if command == "set" && v <= 0 {
		return 0, invalid
	}
	if word == "PX" {
		base := c.n.stepUS() / 1000
		if v > 1<<62-base {
			return 0, invalid
		}
		v += base
	}
	return v, ""
}

func set(c *call) any {
	key, value := c.args[0], c.args[1]
	o, err := c.setOptions()
	if err != "" {
		return err
	}
	e := c.n.lookup(key)
	var old any
	if o.get && e != nil {
		if e.kind != "string" {
			return wrongType
		}
		old = e.str
	}
	if o.nx && e != nil || o.xx && e == nil {
		return old
	}
	c.edit(key)
	fresh := &entry{kind: "string", str: value}
	end := o.end
	if o.keep && e != nil {
		end = e.end
	}
	if over := end != 0 && end <= c.n.nowMS(); over && c.n.world.opt.Flavour == Valkey && !c.n.applying {
		delete(c.n.keys, key) // the others keep it until it is looked at
		c.effect = [][]string{{"DEL", key}}
	} else {
		c.n.keys[key] = fresh
		c.n.setEnd(fresh, end)
		c.effect = [][]string{{"SET", key, value}}
		if end != 0 {
			c.effect[0] = append(c.effect[0], "PXAT", itoa(end))
		}
	}
	if o.get {
		return old
	}
	return Status("OK")
}

func incr(c *call) any {
	v, ok, err := c.text()
	if err != "" {
		return err
	}
	n := int64(0)
	if ok {
		var bad error
		if n, bad = integer(v); bad != nil || n == 1<<63-1 {
			return notInteger
		}
	}
	c.write(itoa(n + 1))
	return n + 1
}

func appendText(c *call) any {
	v, _, err := c.text()
	if err != "" {
		return err
	}
	c.write(v + c.args[1])
	return len(v) + len(c.args[1])
}

// write changes the string at the first argument's key and keeps its time.
func (c *call) write(value string) {
	c.edit(c.args[0])
	if e := c.n.keys[c.args[0]]; e != nil {
		e.str = value
		return
	}
	c.n.keys[c.args[0]] = &entry{kind: "string", str: value}
}
