package redis

import (
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// The matcher must agree with gopher-lua's own on what both can do.
func TestPatternsMatchAsInLua(t *testing.T) {
	patterns := []string{"^%d+$", "^([1-9]%d*)$", "^(%d+) (%d+) (.*)$", "()(%d+):()", "[%w_]+", "[^,]*", "%s-x", "a.-c", "^@?user:%d+: ", " script: .*$", "%c", "%p", "[a-c%d]+$", "x?y*z+", "^", "$", "(a*(b))c", "[]]", "[^%s]+ ", "%.", "%%"}
	texts := []string{"", "0", "12", "1795195256512539", "12 34 rest of it", "3:abc", "a,b,,c", "abc", "aabbc", "user:3: x", "boom script: f", "\x00\n", "xyz", "zzz", "yyz", "]", "%", "a.b", "héllo wörld"}
	L := lua.NewState()
	defer L.Close()
	L.SetGlobal("find2", L.NewFunction(func(L *lua.LState) int { return luaFind(L, true) }))
	L.SetGlobal("match2", L.NewFunction(func(L *lua.LState) int { return luaFind(L, false) }))
	for _, p := range patterns {
		for _, s := range texts {
			for _, from := range []int{1, -1} {
				code := `local function t(...) if select('#', ...) == 0 then return 'nil' end local o = {} for i = 1, select('#', ...) do o[i] = tostring((select(i, ...))) end return table.concat(o, '|') end
					local a = t(string.find(...)) .. ' ' .. t(string.match(...))
					local b = t(find2(...)) .. ' ' .. t(match2(...))
					if a ~= b then error(a .. ' but ' .. b, 0) end`
				f, err := L.LoadString(code)
				if err != nil {
					t.Fatal(err)
				}
				if err := L.CallByParam(lua.P{Fn: f, Protect: true}, lua.LString(s), lua.LString(p), lua.LNumber(from)); err != nil {
					t.Errorf("%q in %q from %d: %v", p, s, from, err)
				}
			}
		}
	}
}
