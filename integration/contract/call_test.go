package contract

import (
	"math/big"
	"strings"

	"github.com/holdfast-go/holdfast/functions"
)

// valid says by the README's words, not by the library's means, whether the arguments are within
// their bounds.
func (c call) valid() bool {
	owner := func() bool { return size(c.arg(0), 1, functions.MaxBytes) }
	ttl := func() bool { return integer(c.arg(1), functions.MaxTTL) }
	block := func(i int) bool {
		return len(c.args) <= i || integer(c.args[i], min(functions.MaxBlock, 1000*number(c.arg(1))))
	}
	n := len(c.args)
	switch c.function {
	case functions.Acquire:
		return (n == 2 || n == 3) && owner() && ttl() && block(2)
	case functions.AcquireReentrant:
		return n == 3 && owner() && ttl() && size(c.args[2], 1, functions.MaxHoldBytes) && c.args[2] != allHolds
	case functions.Renew:
		return n >= 2 && n <= 5 && owner() && ttl() && size(c.arg(2), 0, functions.MaxBytes) &&
			(n < 4 || integer(c.args[3], 1<<53-1)) && (n < 5 || size(c.args[4], 1, functions.MaxHoldBytes) && c.args[4] != allHolds)
	case functions.Raise: // far below the clock, or far ahead of it
		return n >= 3 && n <= 4 && owner() && ttl() && integer(c.args[2], 1<<40) && size(c.arg(3), 0, functions.MaxBytes)
	case functions.Release:
		return n >= 1 && n <= 3 && owner() && (n == 1 || size(c.args[1], 0, functions.MaxHoldBytes)) &&
			(n < 3 || integer(c.args[2], 1<<53-1))
	case functions.Wait:
		return n >= 3 && n <= 6 && owner() && ttl() && size(c.args[2], 0, functions.MaxBytes) && block(3) &&
			(n < 5 || integer(c.args[4], functions.MaxTTL)) && size(c.arg(5), 0, functions.MaxHoldBytes) && c.arg(5) != allHolds
	case functions.Leave:
		return n >= 1 && n <= 3 && owner() && size(c.arg(1), 0, functions.MaxHoldBytes) && c.arg(1) != allHolds &&
			(n < 3 || integer(c.args[2], 1<<53-1))
	case functions.Break:
		return n == 0 || n == 1 && size(c.args[0], 0, functions.MaxBytes)
	}
	return n == 0
}

// allHolds is no id: to release, it means all holds of an owner.
const allHolds = "*"

func size(text string, least, most int) bool {
	return len(text) >= least && len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func integer(text string, most int64) bool {
	if text == "" || len(text) > 50 || strings.Trim(text, "0123456789") != "" || text[0] == '0' {
		return false
	}
	n, _ := new(big.Int).SetString(text, 10)
	return n.Cmp(big.NewInt(most)) <= 0
}

var (
	// Few of them are frequent, so that the one that waits, holds or was skipped is often the one
	// that calls.
	names   = []string{"a", "b", "c", "d", "e", "a", "b", "c", "d", "e", "a", "b", "c", "f", "g", "h", "i", "j", "k k", "1 2 3", strings.Repeat("o", functions.MaxBytes)}
	badName = []string{"", "a\x00", "a\nb", "\x7f", strings.Repeat("x", functions.MaxBytes+1), strings.Repeat("y", 512<<10)}
	holdIDs = []string{"h1", "h2", allHolds, "3:abc", "0:", " ", strings.Repeat("h", functions.MaxHoldBytes)}
	blocks  = []string{"1", "2", "10", "100", "1000000"}
	leases  = []string{long, "600001", "31536000000"} // none that ends by itself while a test runs
	numbers = append([]string{"31536000001", "1000001"}, notIntegers...)
)

// source decodes bytes into calls; at its end it gives zeros.
type source []byte

func (s *source) next() int {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return int(b)
}

// pick returns one of the good values, or, rarely, a hostile one.
func (s *source) pick(good, bad []string) string {
	n := s.next()
	if n >= 250 && len(bad) > 0 {
		return bad[s.next()%len(bad)]
	}
	return good[n%len(good)]
}

// call decodes one call, of the right number of arguments but for one in 256.
func (s *source) call(locks int, channels []string) call {
	all := functions.Names()[:9]
	// Waiting is frequent, breaking is rare.
	c := call{function: append(all, functions.Wait, functions.Wait, functions.Release, functions.Acquire)[s.next()%13], lock: s.next() % locks}
	if c.function == functions.Break && s.next()%4 > 0 {
		c.function = functions.Leave
	}
	owner, ttl := s.pick(names, badName), s.pick(leases, numbers)
	more := s.next()
	switch c.function {
	case functions.Acquire:
		c.args = append([]string{owner, ttl}, s.some(more%3 == 0, blocks, numbers)...)
	case functions.AcquireReentrant:
		c.args = []string{owner, ttl, s.pick(holdIDs, badName)}
	case functions.Renew:
		c.args = append([]string{owner, ttl}, s.some(more%2 == 0, channels, badName[1:])...)
		if len(c.args) == 3 && more%8 == 0 {
			c.args = append(c.args, s.pick([]string{"1", "9007199254740991"}, numbers)) // another token
		}
		if len(c.args) == 4 && more%16 == 0 {
			c.args = append(c.args, s.pick(holdIDs, badName))
		}
	case functions.Raise:
		c.args = append([]string{owner, ttl, s.pick([]string{"1", "1000000", "9007199254740991"}, numbers)}, s.some(more%2 == 0, channels, badName[1:])...)
	case functions.Release:
		c.args = append([]string{owner}, s.some(more%3 == 0, append(holdIDs, "", ""), badName[1:])...)
		if len(c.args) == 2 && more%2 == 0 {
			c.args = append(c.args, s.pick([]string{"1", "9007199254740991"}, numbers))
		}
	case functions.Wait:
		c.args = append([]string{owner, ttl, s.pick(channels, badName[1:])}, s.some(more%3 == 0, blocks, numbers)...)
		if len(c.args) == 4 && more%2 == 0 {
			c.args = append(c.args, s.pick(leases[2:], numbers)) // a year: never refused
		}
		if len(c.args) == 5 && more%4 == 0 {
			c.args = append(c.args, s.pick(append(holdIDs, ""), badName[1:]))
		}
	case functions.Leave:
		c.args = append([]string{owner}, s.some(more%2 == 0, append(holdIDs, ""), badName[1:])...)
		if len(c.args) == 2 && more%4 == 0 {
			c.args = append(c.args, s.pick([]string{"1", "9007199254740991"}, numbers))
		}
	case functions.Break:
		c.args = s.some(more%2 == 0, names, badName[1:])
	}
	if more == 255 {
		c.args = append(c.args, "1", "1", "1")
	}
	return c
}

func (s *source) some(wanted bool, good, bad []string) []string {
	if !wanted {
		return nil
	}
	return []string{s.pick(good, bad)}
}
