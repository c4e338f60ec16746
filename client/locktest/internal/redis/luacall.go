// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// redisCall is redis.call, and redis.pcall if raising is false.
func (lib *library) redisCall(L *lua.LState, raising bool) int {
	reply := lib.command(L)
	if err, ok := reply.(Error); ok && raising {
		raise(L, string(err))
	}
	L.Push(toLua(L, reply))
	return 1
}

func (lib *library) command(L *lua.LState) any {
	n := lib.node
	s := n.running
	words, good := arguments(L)
	switch {
	case !good:
		return Error("ERR Lua redis lib command arguments must be strings or integers")
	case len(words) == 0:
		return Error("ERR Please specify at least one argument for this redis.call")
	}
	sp, args, err := find(words)
	switch {
	case err != "":
		return Error("ERR Wrong number of args calling Redis command from script")
	case sp == nil:
		if n.world.opt.Unmodelled != nil {
			n.world.unmodelled(n, "redis.call of "+words[0])
		}
		return Error("ERR Unknown Redis command called from script")
	case sp.flags&noScript != 0:
		return Error("ERR This Redis command is not allowed from script")
	case s.noWrites && (sp.flags&write != 0 || strings.HasSuffix(sp.name, "PUBLISH")):
		return Error("ERR Write commands are not allowed from read-only scripts.")
	}
	return n.perform(&call{n: n, s: s.by, spec: sp, args: args})
}

func aclCheck(L *lua.LState) int {
	words, _ := arguments(L)
	if len(words) == 0 {
		raise(L, "ERR Please specify at least one argument for this redis.acl_check_cmd() call")
	}
	if sp, _, err := find(words); sp == nil || err != "" {
		raise(L, "ERR Invalid command passed to redis.acl_check_cmd()")
	}
	L.Push(lua.LTrue)
	return 1
}

// arguments are the words of a command, if all values can be some.
func arguments(L *lua.LState) (words []string, good bool) {
	words, good = make([]string, L.GetTop()), true
	for i := range words {
		switch v := L.Get(i + 1).(type) {
		case lua.LString:
			words[i] = string(v)
		case lua.LNumber:
			if f := float64(v); f == float64(int64(f)) && f < 1e17 && f > -1e17 {
				words[i] = itoa(int64(f))
			} else {
				words[i] = strconv.FormatFloat(f, 'g', 17, 64)
			}
		default:
			good = false
		}
	}
	return words, good
}

func toLua(L *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case nil:
		return lua.LFalse
	case string:
		return lua.LString(v)
	case int:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	case Status:
		t := L.NewTable()
		t.RawSetString("ok", lua.LString(v))
		return t
	case Error:
		return newError(L, string(v))
	case pairs:
		return toLua(L, []any(v))
	case []any:
		t := L.CreateTable(len(v), 0)
		for _, x := range v {
			t.Append(toLua(L, x))
		}
		return t
	}
	panic(fmt.Sprintf("redis: no Lua for %T", v))
}

func fromLua(v lua.LValue) any {
	switch v := v.(type) {
	case lua.LNumber:
		return int64(v)
	case lua.LString:
		return string(v)
	case lua.LBool:
		if v {
			return 1
		}
	case *lua.LTable:
		if e, ok := v.RawGetString("err").(lua.LString); ok {
			return Error(oneLine(string(e)))
		}
		if s, ok := v.RawGetString("ok").(lua.LString); ok {
			return Status(oneLine(string(s)))
		}
		out := []any{}
		for i := 1; ; i++ {
			x := v.RawGetInt(i)
			if x == lua.LNil {
				return out
			}
			out = append(out, fromLua(x))
		}
	}
	return nil
}
