package redis

import (
	"encoding/binary"
	"math"

	lua "github.com/yuin/gopher-lua"
)

// openStruct makes the global struct: pack and unpack of lua_struct, with the formats that lock
// functions use: little-endian doubles and unsigned integers of a byte or two.
func openStruct(L *lua.LState) *lua.LTable {
	t := L.NewTable()
	t.RawSetString("pack", L.NewFunction(structPack))
	t.RawSetString("unpack", L.NewFunction(structUnpack))
	return t
}

// nextField takes the first field of a format: its kind, and how many bytes it has.
func nextField(L *lua.LState, format string) (kind byte, size int, rest string) {
	switch {
	case format[0] == 'd':
		return 'd', 8, format[1:]
	case len(format) > 1 && format[0] == 'I' && (format[1] == '1' || format[1] == '2'):
		return 'I', int(format[1] - '0'), format[2:]
	}
	L.RaiseError("the struct format %s is not modelled", format)
	return 0, 0, ""
}

func littleEndian(L *lua.LState) string {
	format := L.CheckString(1)
	if format == "" || format[0] != '<' {
		L.RaiseError("the struct format %s is not modelled", format)
	}
	return format[1:]
}

func structPack(L *lua.LState) int {
	var b []byte
	for format, arg := littleEndian(L), 2; format != ""; arg++ {
		kind, size, rest := nextField(L, format)
		format = rest
		n := float64(L.CheckNumber(arg))
		if kind == 'd' {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(n))
			continue
		}
		for i := range size {
			b = append(b, byte(int64(n)>>(8*i)))
		}
	}
	L.Push(lua.LString(b))
	return 1
}

func structUnpack(L *lua.LState) int {
	data, at, fields := L.CheckString(2), L.OptInt(3, 1)-1, 0
	for format := littleEndian(L); format != ""; fields++ {
		kind, size, rest := nextField(L, format)
		format = rest
		if at < 0 || at+size > len(data) {
			L.ArgError(2, "data string too short")
		}
		bits := uint64(0)
		for i := range size {
			bits |= uint64(data[at+i]) << (8 * i)
		}
		if at += size; kind == 'd' {
			L.Push(lua.LNumber(math.Float64frombits(bits)))
		} else {
			L.Push(lua.LNumber(bits))
		}
	}
	L.Push(lua.LNumber(at + 1))
	return fields + 1
}
