// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/functions"
)

// call is one call as it is sent.
type call struct {
	function string
	lock     int
	args     []string
}

// fixed is how many arguments stand before the words of a function, and options which words it knows.
var (
	fixed = map[string]int{functions.Acquire: 2, functions.AcquireReentrant: 3, functions.Renew: 2, functions.Release: 1,
		functions.Wait: 2, functions.Finish: 3, functions.Leave: 1}
	options = map[string][]string{
		functions.Acquire:          {functions.OptTokens, functions.OptGuard, functions.OptMinHold, functions.OptLimit, functions.OptShared, functions.OptValue},
		functions.AcquireReentrant: {functions.OptGuard},
		functions.Renew:            {functions.OptFence, functions.OptHold, functions.OptRaise},
		functions.Release:          {functions.OptHold, functions.OptAll, functions.OptLast},
		functions.Wait: {functions.OptChannel, functions.OptMaxWait, functions.OptHold, functions.OptTokens, functions.OptGuard,
			functions.OptMinHold, functions.OptLimit, functions.OptShared, functions.OptValue},
		functions.Finish: {functions.OptFence},
		functions.Leave:  {functions.OptHold, functions.OptFence},
		functions.Break:  {functions.OptOwner, functions.OptReason, functions.OptForget},
	}
	// exclusive are the words of which one makes the other useless, in the order of the error.
	exclusive = [][2]string{{functions.OptHold, functions.OptAll}, {functions.OptHold, functions.OptLast}, {functions.OptTokens, functions.OptHold},
		{functions.OptMinHold, functions.OptHold}, {functions.OptMinHold, functions.OptTokens}, {functions.OptForget, functions.OptReason},
		{functions.OptLimit, functions.OptShared}, {functions.OptLimit, functions.OptHold}, {functions.OptLimit, functions.OptTokens},
		{functions.OptShared, functions.OptHold}, {functions.OptShared, functions.OptTokens}, {functions.OptValue, functions.OptHold},
		{functions.OptValue, functions.OptTokens}, {functions.OptValue, functions.OptLimit}, {functions.OptValue, functions.OptShared}}
	bounds = map[string]int64{functions.OptTokens: functions.MaxTokens, functions.OptGuard: functions.MaxTTL, functions.OptMinHold: functions.MaxTTL,
		functions.OptLimit: functions.MaxHolders, functions.OptMaxWait: functions.MaxTTL, functions.OptFence: 1<<53 - 1, functions.OptRaise: 1<<53 - 1, functions.OptLast: 1<<53 - 1}
	lengths = map[string][2]int{functions.OptHold: {1, functions.MaxHoldBytes}, functions.OptOwner: {1, functions.MaxBytes},
		functions.OptReason: {0, functions.MaxBytes}, functions.OptChannel: {1, functions.MaxBytes}}
)

// alone reports whether a word has no value.
func alone(word string) bool {
	return word == functions.OptAll || word == functions.OptForget || word == functions.OptShared || word == functions.OptValue
}

func (c call) arg(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

// option returns the value of a word, and whether it is there.
func (c call) option(word string) (string, bool) {
	for i := fixed[c.function]; i < len(c.args); i++ {
		switch is := strings.ToUpper(c.args[i]); {
		case is == word && alone(word):
			return "", true
		case is == word:
			return c.arg(i + 1), true
		case !alone(is):
			i++
		}
	}
	if word == functions.OptHold && c.function == functions.AcquireReentrant {
		return c.arg(2), true
	}
	return "", false
}

func (c call) has(word string) bool { _, is := c.option(word); return is }

func (c call) guarded() bool { return c.has(functions.OptGuard) }

func (c call) number(word string) int64 {
	text, _ := c.option(word)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// waiter is what a call asks for that takes the lock.
func (c call) waiter() waiter {
	w := waiter{owner: c.arg(0), tokens: max(1, c.number(functions.OptTokens)), minimum: c.has(functions.OptMinHold)}
	w.channel, _ = c.option(functions.OptChannel)
	if hold, one := c.option(functions.OptHold); one {
		w.holds = []string{hold}
	}
	if c.has(functions.OptShared) {
		w.kind, w.limit = functions.WhyShared, functions.MaxHolders
	} else if c.has(functions.OptLimit) {
		w.kind, w.limit = functions.WhyLimited, int(c.number(functions.OptLimit))
	}
	return w
}

// notIntegers are what an integer argument must refuse, whatever its bounds.
var notIntegers = []string{"", "0", "-1", "+1", "01", "1.0", "1.5", "1e3", "0x10", "nan", "NaN", "inf", "-inf", " 1", "1 ", "1\n", "1\x00",
	"\x001", "one", "१", "9007199254740992", "9007199254740993", "18446744073709551616", strings.Repeat("9", 512<<10), "1,000"}

var (
	// Few of them are frequent, so that the one that waits, holds or was skipped is often the one
	// that calls.
	names   = []string{"a", "b", "c", "d", "e", "a", "b", "c", "d", "e", "a", "b", "c", "f", "g", "h", "i", "j", "\xff\xfe %s %d", "1 2 3", strings.Repeat("o", functions.MaxBytes)}
	holdIDs = []string{"h1", "h2", "*", "3:abc", "0:", " ", strings.Repeat("h", functions.MaxHoldBytes)}
	leases  = []string{long, long, "600001", nearYear} // none that ends by itself while a test runs
	values  = []string{"v", "w", "", "1 2 3", "\x00\r\n\xff", "VALUE", strings.Repeat("\x00", functions.MaxValue), strings.Repeat("x", functions.MaxValue+1)}
	// good are values of the words. What begins with @ is a token or a holder of the lock: see resolve
	good = map[string][]string{
		functions.OptLimit: {"1", "2", "2", "3", "4", "1000"}, functions.OptTokens: {"1", "2", "10", "100"}, functions.OptGuard: {nearYear}, functions.OptMinHold: {long, nearYear}, functions.OptMaxWait: {year},
		functions.OptHold: holdIDs, functions.OptFence: {"@fence", "@fence", "@broken", "1", "9007199254740991"}, functions.OptRaise: {"1", "@fence", "@next"},
		functions.OptLast: {"1", "@fence", "9007199254740991"}, functions.OptOwner: names, functions.OptReason: {"", "it hung", "\xff %s b"},
	}
)

const (
	year     = "31536000000"
	nearYear = "31535000000" // who waits for a year at most waits for that
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

func (s *source) pick(values []string) string { return values[s.next()%len(values)] }

// Waiting and giving back are frequent, breaking is rare.
var frequent = []string{functions.Acquire, functions.Acquire, functions.Acquire, functions.AcquireReentrant, functions.Renew, functions.Renew,
	functions.Release, functions.Release, functions.Release, functions.Wait, functions.Wait, functions.Wait, functions.Wait, functions.Leave,
	functions.Finish, functions.Break, functions.Inspect, functions.Holders}

// clashes reports whether a word may not stand beside those that a call has.
func (c call) clashes(word string) bool {
	return c.has(word) || slices.ContainsFunc(exclusive, func(pair [2]string) bool {
		return pair[0] == word && c.has(pair[1]) || pair[1] == word && c.has(pair[0])
	})
}

// call decodes one call that is right: what is wrong is for the tests of arguments. Half of them have no
// words that could be left out.
func (s *source) call(locks int, channels []string) call {
	c := call{function: s.pick(frequent), lock: s.next() % locks}
	arguments := [][]string{names, leases, holdIDs}[:fixed[c.function]]
	if c.function == functions.Finish {
		arguments = [][]string{names, values, leases}
	}
	for _, values := range arguments {
		c.args = append(c.args, s.pick(values))
	}
	switch c.function {
	case functions.Renew, functions.Release, functions.Finish, functions.Leave:
		c.args[0] = s.pick([]string{c.args[0], "@first", "@last"})
	case functions.Wait:
		c.args[0] = s.pick([]string{c.args[0], c.args[0], c.args[0], "@head"})
	case functions.Break:
		c.args = append(c.args, [][]string{nil, {functions.OptOwner, "@first"}, {functions.OptOwner, "@last"}}[s.next()%3]...)
	}
	if c.function == functions.Wait || c.function == functions.Acquire {
		switch s.next() % (2 + 4*c.lock) { // the first lock is exclusive as a rule
		case 2, 3, 4, 5:
			c.args = append(c.args, functions.OptLimit, s.pick(good[functions.OptLimit]))
		case 6, 7, 8, 9:
			c.args = append(c.args, functions.OptShared)
		}
	}
	if c.waiter().kind != "" && s.next()%40 == 0 {
		c.args = append(c.args, functions.OptGuard, nearYear)
	} else if (c.function == functions.Wait || c.function == functions.Acquire) && c.waiter().kind == "" && s.next()%8 == 0 {
		c.args = append(c.args, functions.OptValue)
	}
	if c.function == functions.Wait && s.next()%4 > 0 {
		c.args = append(c.args, functions.OptChannel, s.pick(channels))
	}
	for n := s.next() % 8; n > 3 && len(options[c.function]) > 0; n -= 3 {
		word, values := s.pick(options[c.function]), channels
		if word == functions.OptGuard && s.next()%4 > 0 || c.clashes(word) {
			continue // with a guard the lock is nobody's for long
		}
		if word != functions.OptChannel {
			values = good[word]
		}
		c.args = append(c.args, word)
		if s.next()%16 == 0 {
			c.args[len(c.args)-1] = strings.ToLower(word)
		}
		if !alone(word) {
			c.args = append(c.args, s.pick(values))
		}
	}
	return c
}
