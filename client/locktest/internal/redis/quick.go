// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"regexp"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// whole are the patterns that lock functions ask for most, as regexp writes them.
var whole = map[string]*regexp.Regexp{
	"^%C*$":      regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`),
	"^%C+$":      regexp.MustCompile(`^[^\x00-\x1f\x7f]+$`),
	"^%d+$":      regexp.MustCompile(`^\d+$`),
	"^%w+$":      regexp.MustCompile(`^[0-9A-Za-z]+$`),
	"^[1-9]%d*$": regexp.MustCompile(`^[1-9]\d*$`),
}

// quicken answers the commonest calls of string.find and string.format itself: gopher-lua compiles a pattern at
// every call, and formats by way of package fmt. That would be a third of what a lock function costs.
func quicken(L *lua.LState, text *lua.LTable) {
	find, format := text.RawGetString("find").(*lua.LFunction), text.RawGetString("format").(*lua.LFunction)
	text.RawSetString("find", L.NewFunction(func(L *lua.LState) int {
		s, isText := L.Get(1).(lua.LString)
		pattern, _ := L.Get(2).(lua.LString)
		match := whole[string(pattern)]
		switch {
		case match == nil || !isText || L.GetTop() != 2:
			return find.GFunction(L)
		case !match.MatchString(string(s)):
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(1))
		L.Push(lua.LNumber(len(s)))
		return 2
	}))
	text.RawSetString("format", L.NewFunction(func(L *lua.LState) int {
		n, isNumber := L.Get(2).(lua.LNumber)
		if !isNumber || L.Get(1) != lua.LString("%d") || n != lua.LNumber(int64(n)) || n > 1<<60 || n < -1<<60 {
			return format.GFunction(L)
		}
		L.Push(lua.LString(strconv.FormatInt(int64(n), 10)))
		return 1
	}))
}
