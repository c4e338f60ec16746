package redis

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// matcher matches Lua patterns as the Lua 5.1 manual has them (5.4.1). gopher-lua's own compiles a
// pattern at every call, which is half of what a lock function costs. It panics with a patternError
// for a pattern that is malformed.
type matcher struct {
	src, pat string
	depth    int
	level    int
	capture  [32]struct{ start, length int }
}

const (
	captureOpen     = -1
	capturePosition = -2
	maxDepth        = 200
)

type patternError string

func (m *matcher) classEnd(p int) int {
	if p >= len(m.pat) {
		panic(patternError("malformed pattern"))
	}
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			panic(patternError("malformed pattern (ends with '%')"))
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pat) || m.pat[p] != ']'; first = false {
			if p >= len(m.pat) {
				panic(patternError("malformed pattern (missing ']')"))
			}
			if m.pat[p] == '%' {
				p++
			}
			p++
		}
		return p + 1
	}
	return p
}

func classMatches(c, class byte) bool {
	var is bool
	switch class | 0x20 {
	case 'a':
		is = c|0x20 >= 'a' && c|0x20 <= 'z'
	case 'c':
		is = c < 32 || c == 127
	case 'd':
		is = c >= '0' && c <= '9'
	case 'l':
		is = c >= 'a' && c <= 'z'
	case 'p':
		is = c > 32 && c < 127 && !classMatches(c, 'w')
	case 's':
		is = c == ' ' || c >= 9 && c <= 13
	case 'u':
		is = c >= 'A' && c <= 'Z'
	case 'w':
		is = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	case 'x':
		is = c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'z':
		is = c == 0
	default:
		return class == c
	}
	if class >= 'A' && class <= 'Z' {
		return !is
	}
	return is
}

// setMatches matches a set that begins at p and ends before end, brackets included.
func (m *matcher) setMatches(c byte, p, end int) bool {
	set := m.pat[p+1 : end-1]
	not := len(set) > 0 && set[0] == '^'
	if not {
		set = set[1:]
	}
	for i := 0; i < len(set); i++ {
		switch {
		case set[i] == '%' && i+1 < len(set):
			i++
			if classMatches(c, set[i]) {
				return !not
			}
		case i+2 < len(set) && set[i+1] == '-':
			if set[i] <= c && c <= set[i+2] {
				return !not
			}
			i += 2
		case set[i] == c:
			return !not
		}
	}
	return not
}

func (m *matcher) one(s, p, end int) bool {
	if s >= len(m.src) {
		return false
	}
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return classMatches(m.src[s], m.pat[p+1])
	case '[':
		return m.setMatches(m.src[s], p, end)
	}
	return m.pat[p] == m.src[s]
}

// match returns where a match of the pattern from p ends that begins at s, or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxDepth {
		panic(patternError("pattern too complex"))
	}
	defer func() { m.depth-- }()
	for p < len(m.pat) {
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.open(s, p+2, capturePosition)
			}
			return m.open(s, p+1, captureOpen)
		case ')':
			return m.shut(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 < len(m.pat) && (m.pat[p+1] == 'b' || m.pat[p+1] == 'f' || m.pat[p+1] >= '1' && m.pat[p+1] <= '9') {
				panic(patternError("%b, %f and back references are not modelled"))
			}
		}
		end := m.classEnd(p)
		if end < len(m.pat) {
			switch m.pat[end] {
			case '?':
				if m.one(s, p, end) {
					if r := m.match(s+1, end+1); r >= 0 {
						return r
					}
				}
				p = end + 1
				continue
			case '*':
				return m.most(s, p, end)
			case '+':
				if !m.one(s, p, end) {
					return -1
				}
				return m.most(s+1, p, end)
			case '-':
				return m.least(s, p, end)
			}
		}
		if !m.one(s, p, end) {
			return -1
		}
		s, p = s+1, end
	}
	return s
}

func (m *matcher) most(s, p, end int) int {
	n := 0
	for m.one(s+n, p, end) {
		n++
	}
	for ; n >= 0; n-- {
		if r := m.match(s+n, end+1); r >= 0 {
			return r
		}
	}
	return -1
}

func (m *matcher) least(s, p, end int) int {
	for {
		if r := m.match(s, end+1); r >= 0 {
			return r
		}
		if !m.one(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) open(s, p, kind int) int {
	if m.level == len(m.capture) {
		panic(patternError("too many captures"))
	}
	m.capture[m.level].start, m.capture[m.level].length = s, kind
	m.level++
	r := m.match(s, p)
	if r < 0 {
		m.level--
	}
	return r
}

func (m *matcher) shut(s, p int) int {
	for l := m.level - 1; l >= 0; l-- {
		if m.capture[l].length == captureOpen {
			m.capture[l].length = s - m.capture[l].start
			r := m.match(s, p)
			if r < 0 {
				m.capture[l].length = captureOpen
			}
			return r
		}
	}
	panic(patternError("invalid pattern capture"))
}

// luaFind is string.find, and string.match if find is false.
func luaFind(L *lua.LState, find bool) int {
	m := &matcher{src: L.CheckString(1), pat: L.CheckString(2)}
	from := L.OptInt(3, 1)
	switch {
	case from < 0:
		from = max(0, len(m.src)+from)
	case from > 0:
		from--
	}
	from = min(from, len(m.src))
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(patternError)
			if !ok {
				panic(r)
			}
			L.RaiseError("%s", string(bad))
		}
	}()
	p := 0
	anchored := len(m.pat) > 0 && m.pat[0] == '^'
	if anchored {
		p = 1
	}
	for s := from; s <= len(m.src); s++ {
		m.level = 0
		if end := m.match(s, p); end >= 0 {
			return m.push(L, s, end, find)
		}
		if anchored {
			break
		}
	}
	L.Push(lua.LNil)
	return 1
}

func (m *matcher) push(L *lua.LState, s, end int, find bool) int {
	pushed := 0
	if find {
		L.Push(lua.LNumber(s + 1))
		L.Push(lua.LNumber(end))
		pushed = 2
	} else if m.level == 0 {
		L.Push(lua.LString(m.src[s:end]))
		return 1
	}
	for _, c := range m.capture[:m.level] {
		switch {
		case c.length == capturePosition:
			L.Push(lua.LNumber(c.start + 1))
		case c.length == captureOpen:
			panic(patternError("unfinished capture"))
		default:
			L.Push(lua.LString(m.src[c.start : c.start+c.length]))
		}
	}
	return pushed + m.level
}

// plainFind is string.find of a text that is no pattern.
func plainFind(L *lua.LState) int {
	src, text, from := L.CheckString(1), L.CheckString(2), L.OptInt(3, 1)
	switch {
	case from < 0:
		from = max(0, len(src)+from)
	case from > 0:
		from--
	}
	from = min(from, len(src))
	at := strings.Index(src[from:], text)
	if at < 0 {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(lua.LNumber(from + at + 1))
	L.Push(lua.LNumber(from + at + len(text)))
	return 2
}
