package redis

import "strconv"

const (
	wrongType  Error = "WRONGTYPE Operation against a key holding the wrong kind of value"
	notInteger Error = "ERR value is not an integer or out of range"
	syntaxErr  Error = "ERR syntax error"
)

func init() {
	register(
		&spec{"HGET", 3, read, 1, 1, 1, hget},
		&spec{"HMGET", -3, read, 1, 1, 1, hmget},
		&spec{"HGETALL", 2, read, 1, 1, 1, hgetall},
		&spec{"HKEYS", 2, read, 1, 1, 1, hkeys},
		&spec{"HLEN", 2, read, 1, 1, 1, hlen},
		&spec{"HEXISTS", 3, read, 1, 1, 1, hexists},
		&spec{"HSET", -4, write | denyOOM, 1, 1, 1, hset},
		&spec{"HSETNX", 4, write | denyOOM, 1, 1, 1, hsetnx},
		&spec{"HDEL", -3, write, 1, 1, 1, hdel},
		&spec{"HINCRBY", 4, write | denyOOM, 1, 1, 1, hincrby},
	)
}

// hash returns the fields of the first argument's key, nil if there is none.
func (c *call) hash() (map[string]string, Error) {
	e := c.n.lookup(c.args[0])
	if e == nil {
		return nil, ""
	}
	if e.kind != "hash" {
		return nil, wrongType
	}
	return e.hash, ""
}

// hashToWrite returns the fields of a hash that may be a new one, after announcing the change.
func (c *call) hashToWrite() (map[string]string, Error) {
	h, err := c.hash()
	if err != "" {
		return nil, err
	}
	c.edit(c.args[0])
	if h == nil {
		h = map[string]string{}
		c.n.keys[c.args[0]] = &entry{kind: "hash", hash: h}
	}
	return h, ""
}

func orNil(v string, ok bool) any {
	if !ok {
		return nil
	}
	return v
}

func hget(c *call) any {
	h, err := c.hash()
	if err != "" {
		return err
	}
	v, ok := h[c.args[1]]
	return orNil(v, ok)
}

func hmget(c *call) any {
	h, err := c.hash()
	if err != "" {
		return err
	}
	out := make([]any, len(c.args)-1)
	for i, f := range c.args[1:] {
		v, ok := h[f]
		out[i] = orNil(v, ok)
	}
	return out
}

// hgetall gives the fields in the order of their names: Redis promises none.
func hgetall(c *call) any {
	h, err := c.hash()
	if err != "" {
		return err
	}
	out := pairs{}
	for _, f := range sortedKeys(h) {
		out = append(out, f, h[f])
	}
	return out
}

func hkeys(c *call) any {
	h, err := c.hash()
	if err != "" {
		return err
	}
	out := []any{}
	for _, f := range sortedKeys(h) {
		out = append(out, f)
	}
	return out
}

func hlen(c *call) any {
	h, err := c.hash()
	if err != "" {
		return err
	}
	return len(h)
}

func hexists(c *call) any {
	h, err := c.hash()
	if err != "" {
		return err
	}
	_, ok := h[c.args[1]]
	return oneIf(ok)
}

func hset(c *call) any {
	if len(c.args)%2 == 0 {
		return Error("ERR wrong number of arguments for 'hset' command")
	}
	h, err := c.hashToWrite()
	if err != "" {
		return err
	}
	added := 0
	for i := 1; i < len(c.args); i += 2 {
		if _, ok := h[c.args[i]]; !ok {
			added++
		}
		h[c.args[i]] = c.args[i+1]
	}
	return added
}

func hsetnx(c *call) any {
	h, err := c.hash()
	if err != "" {
		return err
	}
	if _, ok := h[c.args[1]]; ok {
		return 0
	}
	h, _ = c.hashToWrite()
	h[c.args[1]] = c.args[2]
	return 1
}

func hdel(c *call) any {
	h, err := c.hash()
	if err != "" {
		return err
	}
	removed := 0
	for _, f := range c.args[1:] {
		if _, ok := h[f]; !ok {
			continue
		}
		if removed == 0 {
			c.edit(c.args[0])
		}
		removed++
		delete(h, f)
	}
	if removed > 0 && len(h) == 0 {
		delete(c.n.keys, c.args[0])
	}
	return removed
}

func hincrby(c *call) any {
	by, bad := integer(c.args[2])
	if bad != nil {
		return notInteger
	}
	h, err := c.hash()
	if err != "" {
		return err
	}
	old := int64(0)
	if v, ok := h[c.args[1]]; ok {
		if old, bad = integer(v); bad != nil {
			return Error("ERR hash value is not an integer")
		}
	}
	sum := old + by
	if by > 0 && sum < old || by < 0 && sum > old {
		return Error("ERR increment or decrement would overflow")
	}
	h, _ = c.hashToWrite()
	h[c.args[1]] = strconv.FormatInt(sum, 10)
	return sum
}

func oneIf(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
