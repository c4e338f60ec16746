package redis

import (
	"slices"
	"strings"
)

func init() {
	register(
		&spec{"CLIENT|TRACKING", -3, noScript | always, 0, 0, 0, track},
		&spec{"CLIENT|CACHING", 3, noScript | always, 0, 0, 0, setCaching},
	)
}

func track(c *call) any {
	s := c.s
	switch strings.ToUpper(c.args[0]) {
	case "OFF":
		s.untrack()
		s.tracked, s.optin, s.optout, s.noloop = false, false, false, false
		return Status("OK")
	case "ON":
	default:
		return syntaxErr
	}
	optin, optout, noloop := false, false, false
	for _, o := range c.args[1:] {
		switch strings.ToUpper(o) {
		case "OPTIN":
			optin = true
		case "OPTOUT":
			optout = true
		case "NOLOOP":
			noloop = true
		default:
			return c.n.world.unmodelled(c.n, "CLIENT TRACKING ON "+o)
		}
	}
	if optin && optout {
		return Error("ERR You can't specify both OPTIN mode and OPTOUT mode")
	}
	if !s.enc.resp3 {
		return Error("ERR Client tracking can be enabled only in RESP3 mode or with a valid REDIRECT client ID")
	}
	s.tracked, s.optin, s.optout, s.noloop = true, optin, optout, noloop
	return Status("OK")
}

func setCaching(c *call) any {
	s := c.s
	if !s.tracked || !s.optin && !s.optout {
		return Error("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	}
	yes := strings.EqualFold(c.args[0], "YES")
	switch {
	case yes && !s.optin:
		return Error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")
	case strings.EqualFold(c.args[0], "NO") && !s.optout:
		return Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")
	case !yes && !strings.EqualFold(c.args[0], "NO"):
		return syntaxErr
	}
	s.caching = &yes
	return Status("OK")
}

// remember registers the keys of a read: those that were read, or in functions of Redis 7.0 those
// that were declared.
func (n *Node) remember(c *call) {
	s := c.s
	switch {
	case s == nil || !s.tracked,
		s.optin && (s.caching == nil || !*s.caching),
		s.optout && s.caching != nil && !*s.caching:
		return
	}
	keys := c.spec.keysOf(c.args)
	if n.running != nil && n.world.opt.Flavour == Redis70 {
		keys = n.running.keys
	}
	for _, key := range keys {
		m := n.tracking[key]
		if m == nil {
			m = map[*session]bool{}
			n.tracking[key] = m
		}
		m[s] = true
	}
}

// invalidate tells those that have read the key. It is told once: they must read again. NOLOOP
// spares the client whose command runs, also if that command only met a key whose time was over.
func (n *Node) invalidate(key string) {
	m := n.tracking[key]
	if m == nil {
		return
	}
	delete(n.tracking, key)
	for _, s := range byID(m) {
		if !s.busy || !s.noloop {
			s.pushInvalidation([]any{key})
		}
	}
}

func (n *Node) invalidateAll() {
	n.tracking = map[string]map[*session]bool{}
	for _, s := range n.sortedSessions() {
		if s.tracked {
			s.pushInvalidation(nil)
		}
	}
}

func byID(m map[*session]bool) []*session {
	out := make([]*session, 0, len(m))
	for s := range m {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *session) int { return int(a.id - b.id) })
	return out
}

// untrack forgets what the connection has read.
func (s *session) untrack() {
	if !s.tracked {
		return
	}
	for key, m := range s.node.tracking { // in any order: nothing is sent
		delete(m, s)
		if len(m) == 0 {
			delete(s.node.tracking, key)
		}
	}
}
