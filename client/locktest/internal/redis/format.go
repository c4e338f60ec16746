package redis

import (
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// luaFormat is string.format. The directives that lock functions use, %d %s and %.0f of whole
// numbers, are written here because gopher-lua's go through package fmt; all others are left to it.
func luaFormat(whole *lua.LFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		if text, ok := formatted(L); ok {
			L.Push(lua.LString(text))
			return 1
		}
		n := L.GetTop()
		L.Insert(whole, 1)
		L.Call(n, 1)
		return 1
	}
}

func formatted(L *lua.LState) (string, bool) {
	format, ok := L.Get(1).(lua.LString)
	if !ok {
		return "", false
	}
	var buffer [128]byte
	b, arg := buffer[:0], 2
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b = append(b, format[i])
			continue
		}
		rest := string(format[i+1:])
		v := L.Get(arg)
		arg++
		switch {
		case len(rest) > 0 && rest[0] == 'd':
			i++
		case len(rest) > 2 && rest[:3] == ".0f":
			i += 3
		case len(rest) > 0 && rest[0] == 's':
			text, ok := v.(lua.LString)
			if !ok {
				return "", false
			}
			b = append(b, text...)
			i++
			continue
		default:
			return "", false
		}
		n, ok := v.(lua.LNumber)
		if !ok || float64(n) != float64(int64(n)) || n > 1<<60 || n < -1<<60 {
			return "", false
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(b), true
}
