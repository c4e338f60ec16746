package redis

// glob matches as Redis' stringmatchlen does: * ? [a-z] [^a] and \ before a character.
func glob(p, s string) bool {
	for len(p) > 0 {
		switch p[0] {
		case '*':
			for len(p) > 1 && p[1] == '*' {
				p = p[1:]
			}
			for i := 0; i <= len(s); i++ {
				if glob(p[1:], s[i:]) {
					return true
				}
			}
			return false
		case '[':
			if len(s) == 0 {
				return false
			}
			rest, ok := globClass(p[1:], s[0])
			if !ok {
				return false
			}
			p, s = rest, s[1:]
			continue
		case '\\':
			if len(p) > 1 {
				p = p[1:]
			}
		case '?':
			if len(s) == 0 {
				return false
			}
			p, s = p[1:], s[1:]
			continue
		}
		if len(s) == 0 || p[0] != s[0] {
			return false
		}
		p, s = p[1:], s[1:]
	}
	return len(s) == 0
}

// globClass matches one character and returns the pattern after the class.
func globClass(p string, c byte) (string, bool) {
	not, found := false, false
	if len(p) > 0 && p[0] == '^' {
		not, p = true, p[1:]
	}
	for len(p) > 0 && p[0] != ']' {
		switch {
		case p[0] == '\\' && len(p) > 1:
			found = found || p[1] == c
			p = p[2:]
		case len(p) > 2 && p[1] == '-':
			lo, hi := min(p[0], p[2]), max(p[0], p[2])
			found = found || lo <= c && c <= hi
			p = p[3:]
		default:
			found = found || p[0] == c
			p = p[1:]
		}
	}
	if len(p) > 0 {
		p = p[1:]
	}
	return p, found != not
}
