// SPDX-License-Identifier: Apache-2.0

package redis

import "strings"

func init() {
	register(
		&spec{"CLIENT|TRACKING", -3, noScript | always, 0, track},
		&spec{"CLIENT|CACHING", 3, noScript | always, 0, setCaching},
	)
}

func track(c *call) any {
	optin, noloop := false, false
	for _, o := range c.args[1:] {
		switch strings.ToUpper(o) {
		case "OPTIN":
			optin = true
		case "NOLOOP":
			noloop = true
		default:
			return c.n.world.unmodelled(c.n, "CLIENT TRACKING ON "+o)
		}
	}
	switch {
	case !strings.EqualFold(c.args[0], "ON"):
		return c.n.world.unmodelled(c.n, "CLIENT TRACKING "+c.args[0])
	case !c.s.enc.resp3:
		return Error("ERR Client tracking can be enabled only in RESP3 mode or with a valid REDIRECT client ID")
	}
	c.s.tracked, c.s.optin, c.s.noloop = true, optin, noloop
	return Status("OK")
}

func setCaching(c *call) any {
	switch {
	case !c.s.tracked || !c.s.optin:
		return Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case strings.EqualFold(c.args[0], "NO"):
		return Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	case !strings.EqualFold(c.args[0], "YES"):
		return syntaxErr
	}
	c.s.caching = true
	return Status("OK")
}

// remember registers the keys of a read: those that were read, or in functions of Redis 7.0 those
// that were declared.
func (n *Node) remember(c *call) {
	s := c.s
	if s == nil || !s.tracked || s.optin && !s.caching {
		return
	}
	keys := c.spec.keysOf(c.args)
	if n.running != nil && n.world.opt.Flavour == Redis70 {
		keys = n.running.keys
	}
	for _, key := range keys {
		if n.tracking[key] == nil {
			n.tracking[key] = map[int64]*session{}
		}
		n.tracking[key][s.id] = s
	}
}

// invalidate tells those that have read the key. It is told once: they must read again. NOLOOP
// spares the client whose command runs, also if that command only met a key whose time was over.
func (n *Node) invalidate(key string) {
	readers := byID(n.tracking[key])
	delete(n.tracking, key)
	for _, s := range readers {
		if !s.busy || !s.noloop {
			s.pushInvalidation([]any{key})
		}
	}
}

func (n *Node) invalidateAll() {
	n.tracking = map[string]map[int64]*session{}
	for _, s := range byID(n.sessions) {
		if s.tracked {
			s.pushInvalidation(nil)
		}
	}
}

// untrack forgets what the connection has read.
func (s *session) untrack() {
	if !s.tracked {
		return
	}
	for key, m := range s.node.tracking { // in any order: nothing is sent
		delete(m, s.id)
		if len(m) == 0 {
			delete(s.node.tracking, key)
		}
	}
}
