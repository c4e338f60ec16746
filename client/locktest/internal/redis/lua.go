// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// libs of Lua that functions have. Those that would reach out of the interpreter are not among
// them.
var luaLibs = []struct {
	name string
	open lua.LGFunction
}{{lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString}, {lua.MathLibName, lua.OpenMath}}

var forbiddenGlobals = []string{"dofile", "loadfile", "print", "require", "module", "newproxy", "_printregs"}

func newLibrary(n *Node, name, source string) *library {
	return &library{name: name, source: source, node: n, functions: map[string]*function{}}
}

// load runs the library's body. While it does, there are only redis.register_function and a few
// more.
func (lib *library) load(body string) Error {
	lib.open()
	L := lib.state
	api := L.GetGlobal("redis").(*lua.LTable)
	api.RawSetString("register_function", L.NewFunction(lib.registerFunction))
	for _, name := range []string{"call", "pcall", "error_reply", "acl_check_cmd"} {
		hidden := api.RawGetString(name)
		api.RawSetString(name, lua.LNil)
		defer api.RawSetString(name, hidden)
	}
	main, err := compile(L, body, "user_function")
	if err != nil {
		return Error("ERR Error compiling function: " + oneLine(err.Error()))
	}
	if err := L.CallByParam(lua.P{Fn: main, Protect: true}); err != nil {
		text, _ := luaError(err)
		return Error("ERR Error registering functions: " + text)
	}
	api.RawSetString("register_function", lua.LNil)
	return ""
}

// open makes the interpreter.
func (lib *library) open() {
	lib.state = lua.NewState(lua.Options{SkipOpenLibs: true, RegistrySize: 1024, RegistryMaxSize: 1024 * 256, RegistryGrowStep: 4096})
	L := lib.state
	for _, l := range luaLibs {
		L.Push(L.NewFunction(l.open))
		L.Push(lua.LString(l.name))
		L.Call(1, 0)
	}
	for _, name := range forbiddenGlobals {
		L.SetGlobal(name, lua.LNil)
	}
	L.SetGlobal("pcall", L.NewFunction(protectedCall))
	L.SetGlobal("tonumber", L.NewFunction(toNumber(L.GetGlobal("tonumber").(*lua.LFunction))))
	quicken(L, L.GetGlobal("string").(*lua.LTable))
	L.SetGlobal("struct", L.SetFuncs(L.NewTable(), map[string]lua.LGFunction{"pack": structPack, "unpack": structUnpack}))
	api := L.SetFuncs(L.NewTable(), map[string]lua.LGFunction{
		"call":          func(L *lua.LState) int { return lib.redisCall(L, true) },
		"pcall":         func(L *lua.LState) int { return lib.redisCall(L, false) },
		"error_reply":   errorReply,
		"acl_check_cmd": aclCheck,
	})
	L.SetGlobal("redis", api)
	if lib.node.world.opt.Flavour == Valkey {
		L.SetGlobal("server", api)
	}
	missing := func(L *lua.LState) int {
		L.RaiseError("Script attempted to access nonexistent global variable '%s'", L.Get(2).String())
		return 0
	}
	guard := L.NewTable()
	L.SetField(guard, "__index", L.NewFunction(missing))
	L.SetField(guard, "__newindex", L.NewFunction(func(L *lua.LState) int {
		L.RaiseError("Attempt to modify a readonly table")
		return 0
	}))
	L.SetMetatable(L.G.Global, guard)
	inner := L.NewTable()
	L.SetField(inner, "__index", L.NewFunction(missing))
	L.SetMetatable(api, inner)
}

func (lib *library) registerFunction(L *lua.LState) int {
	f := &function{lib: lib}
	f.name, f.body = lua.LVAsString(L.Get(1)), L.ToFunction(2)
	if t, ok := L.Get(1).(*lua.LTable); ok && L.GetTop() == 1 {
		f.name = lua.LVAsString(t.RawGetString("function_name"))
		f.body, _ = t.RawGetString("callback").(*lua.LFunction)
		if flags, ok := t.RawGetString("flags").(*lua.LTable); ok {
			flags.ForEach(func(_, v lua.LValue) { f.flags = append(f.flags, lua.LVAsString(v)) })
		}
	}
	if f.name == "" || f.body == nil {
		L.RaiseError("wrong arguments to redis.register_function")
	}
	for _, flag := range f.flags {
		if flag != "no-writes" && flag != "allow-oom" {
			raise(L, string(lib.node.world.unmodelled(lib.node, "the function flag "+flag)))
		}
	}
	if lib.functions[f.name] != nil {
		raise(L, "ERR Function already exists in the library")
	}
	lib.functions[f.name] = f
	return 0
}

// raise ends a call with an error as redis.call does: a table with 'err'.
func raise(L *lua.LState, text string) {
	t := newError(L, text)
	t.RawSetString("at", lua.LString(strings.TrimSuffix(L.Where(1), " ")))
	L.Error(t, 0)
}

func errorReply(L *lua.LState) int {
	given, isText := L.Get(1).(lua.LString)
	text := strings.TrimPrefix(string(given), "-")
	switch {
	case L.GetTop() != 1 || !isText:
		text = "ERR wrong number or type of arguments"
	case !strings.Contains(text, " "): // a bare code
		text = "ERR " + text
	}
	L.Push(newError(L, text))
	return 1
}

func newError(L *lua.LState, text string) *lua.LTable {
	t := L.NewTable()
	t.RawSetString("err", lua.LString(text))
	return t
}

// protectedCall is Lua's pcall as Redis has it: an error table with 'err' arrives as that text.
func protectedCall(L *lua.LState) int {
	L.CheckAny(1)
	err := L.PCall(L.GetTop()-1, lua.MultRet, nil)
	if err == nil {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	L.SetTop(0)
	L.Push(lua.LFalse)
	var thrown lua.LValue = lua.LString(err.Error())
	if failure, ok := err.(*lua.ApiError); ok && failure.Object != nil && failure.Object != lua.LNil {
		thrown = failure.Object
	}
	if t, isTable := thrown.(*lua.LTable); isTable {
		if text, isText := t.RawGetString("err").(lua.LString); isText {
			thrown = text
		}
	}
	L.Push(thrown)
	return 2
}

var position = regexp.MustCompile(`^(user_\w+):(\d+): `)

// luaError returns the text of an uncaught error and where it was raised, as 'user_function:12'.
func luaError(err error) (text, at string) {
	failure, ok := err.(*lua.ApiError)
	if !ok {
		return oneLine(err.Error()), ""
	}
	if t, ok := failure.Object.(*lua.LTable); ok {
		return oneLine(lua.LVAsString(t.RawGetString("err"))), strings.TrimSuffix(lua.LVAsString(t.RawGetString("at")), ":")
	}
	text = oneLine(failure.Object.String())
	if m := position.FindStringSubmatch(text); m != nil {
		return "ERR " + text, m[1] + ":" + m[2]
	}
	return "ERR " + text, ""
}

func oneLine(text string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(text) }

// run calls a function. Its time stands still, but for the steps of Redis 7.0.
func (lib *library) run(body *lua.LFunction, s *script, args []string) any {
	L, n := lib.state, lib.node
	n.running = s
	defer func() { n.running = nil }()
	err := L.CallByParam(lua.P{Fn: body, NRet: 1, Protect: true}, stringTable(L, s.keys), stringTable(L, args))
	if err != nil {
		L.SetTop(0)
		text, at := luaError(err)
		if at == "" {
			return Error(fmt.Sprintf("%s script: %s", text, s.name))
		}
		return Error(fmt.Sprintf("%s script: %s, on @%s.", text, s.name, at))
	}
	reply := L.Get(-1)
	L.SetTop(0)
	return fromLua(reply)
}

func stringTable(L *lua.LState, texts []string) *lua.LTable {
	t := L.CreateTable(len(texts), 0)
	for _, x := range texts {
		t.Append(lua.LString(x))
	}
	return t
}

// toNumber is tonumber of a string as C's strtod has it: gopher-lua's own knows no exponents, no
// infinity, and no integer beyond 64 bits.
func toNumber(own *lua.LFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		text, ok := L.Get(1).(lua.LString)
		if !ok || L.GetTop() != 1 {
			return own.GFunction(L)
		}
		digits := strings.ToLower(strings.TrimSpace(string(text)))
		if hex, ok := strings.CutPrefix(digits, "0x"); ok {
			if n, err := strconv.ParseUint(hex, 16, 64); err == nil {
				L.Push(lua.LNumber(n))
				return 1
			}
		} else if n, err := strconv.ParseFloat(digits, 64); err == nil || math.IsInf(n, 0) {
			L.Push(lua.LNumber(n))
			return 1
		}
		L.Push(lua.LNil)
		return 1
	}
}
