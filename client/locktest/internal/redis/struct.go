// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"encoding/binary"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// structSizes returns how many bytes each field of a format has. Those that lock functions use are modelled:
// little-endian doubles, of eight bytes, and unsigned integers of one or two.
func structSizes(L *lua.LState) (sizes []int) {
	format := L.CheckString(1)
	rest, known := strings.CutPrefix(format, "<")
	for known && rest != "" {
		switch {
		case rest[0] == 'd':
			sizes, rest = append(sizes, 8), rest[1:]
		case strings.HasPrefix(rest, "I1"), strings.HasPrefix(rest, "I2"):
			sizes, rest = append(sizes, int(rest[1]-'0')), rest[2:]
		default:
			known = false
		}
	}
	if !known {
		L.RaiseError("the struct format %s is not modelled", format)
	}
	return sizes
}

// structPack and structUnpack are those of lua_struct.
func structPack(L *lua.LState) int {
	var b []byte
	for i, size := range structSizes(L) {
		n := float64(L.CheckNumber(i + 2))
		bits := uint64(int64(n))
		if size == 8 {
			bits = math.Float64bits(n)
		}
		b = append(b, binary.LittleEndian.AppendUint64(nil, bits)[:size]...)
	}
	L.Push(lua.LString(b))
	return 1
}

func structUnpack(L *lua.LState) int {
	data, at, sizes := L.CheckString(2), L.OptInt(3, 1)-1, structSizes(L)
	for _, size := range sizes {
		if at < 0 || at+size > len(data) {
			L.ArgError(2, "data string too short")
		}
		var b [8]byte
		copy(b[:], data[at:at+size])
		bits := binary.LittleEndian.Uint64(b[:])
		n := lua.LNumber(bits)
		if size == 8 {
			n = lua.LNumber(math.Float64frombits(bits))
		}
		L.Push(n)
		at += size
	}
	L.Push(lua.LNumber(at + 1))
	return len(sizes) + 1
}
