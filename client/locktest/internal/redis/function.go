// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"regexp"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func init() {
	register(
		&spec{"FUNCTION|LOAD", -3, write | denyOOM | noScript, 0, functionLoad},
		&spec{"FUNCTION|DELETE", 3, write | noScript, 0, functionDelete},
		&spec{"FUNCTION|FLUSH", -2, write | noScript, 0, functionFlush},
		&spec{"FUNCTION|LIST", -2, noScript, 0, functionList},
		&spec{"FCALL", -3, noScript, 0, func(c *call) any { return c.fcall(false) }},
		&spec{"FCALL_RO", -3, noScript, 0, func(c *call) any { return c.fcall(true) }},
	)
}

// library is one loaded library. It has an interpreter of its own, so its memory starts anew with a
// load.
type library struct {
	name, source string
	node         *Node
	state        *lua.LState
	functions    map[string]*function
}

type function struct {
	lib   *library
	name  string
	body  *lua.LFunction
	flags []string
}

func (f *function) has(flag string) bool { return slices.Contains(f.flags, flag) }

// script is a function that runs.
type script struct {
	lib      *library
	name     string
	by       *session
	keys     []string
	noWrites bool
}

var libraryName = regexp.MustCompile(`^#!lua name=([A-Za-z0-9_]+)\s*$`)

// loadLibrary compiles a library and registers its functions, or changes nothing.
func (n *Node) loadLibrary(source string, replace bool) (string, Error) {
	first, body, found := strings.Cut(source, "\n")
	if !strings.HasPrefix(source, "#!") || !found {
		return "", "ERR Missing library metadata"
	}
	m := libraryName.FindStringSubmatch(strings.TrimSuffix(first, "\r"))
	if m == nil {
		return "", n.world.unmodelled(n, "the library metadata "+first)
	}
	if n.libs[m[1]] != nil && !replace {
		return "", Error("ERR Library '" + m[1] + "' already exists")
	}
	lib := newLibrary(n, m[1], source)
	if err := lib.load("\n" + body); err != "" {
		return "", err
	}
	if len(lib.functions) == 0 {
		return "", "ERR No functions registered"
	}
	for _, name := range sortedKeys(lib.functions) {
		if f := n.function(name); f != nil && f.lib.name != lib.name {
			return "", Error("ERR Function " + name + " already exists")
		}
	}
	n.libs[m[1]] = lib
	return m[1], ""
}

func (n *Node) function(name string) *function {
	for _, lib := range n.libs {
		if f := lib.functions[name]; f != nil {
			return f
		}
	}
	return nil
}

func functionLoad(c *call) any {
	replace := false
	for _, o := range c.args[:len(c.args)-1] {
		if !strings.EqualFold(o, "REPLACE") {
			return Error("ERR Unknown option given: " + o)
		}
		replace = true
	}
	name, err := c.n.loadLibrary(c.args[len(c.args)-1], replace)
	if err != "" {
		return err
	}
	c.n.unit.libs = append(c.n.unit.libs, name)
	return name
}

func functionDelete(c *call) any {
	if c.n.libs[c.args[0]] == nil {
		return Error("ERR Library not found")
	}
	delete(c.n.libs, c.args[0])
	c.n.unit.libs = c.args
	return Status("OK")
}

func functionFlush(c *call) any {
	c.n.unit.libs = append(c.n.unit.libs, sortedKeys(c.n.libs)...)
	c.n.libs = map[string]*library{}
	return Status("OK")
}

func functionList(c *call) any {
	pattern, code := "*", false
	for i := 0; i < len(c.args); i++ {
		switch {
		case strings.EqualFold(c.args[i], "WITHCODE"):
			code = true
		case strings.EqualFold(c.args[i], "LIBRARYNAME") && i+1 < len(c.args):
			i++
			pattern = c.args[i]
		default:
			return Error("ERR Unknown argument " + c.args[i])
		}
	}
	out := []any{}
	for _, name := range sortedKeys(c.n.libs) {
		if !matches(pattern, name) {
			continue
		}
		lib := c.n.libs[name]
		functions := []any{}
		for _, fn := range sortedKeys(lib.functions) {
			functions = append(functions, pairs{"name", fn, "description", nil, "flags", list(lib.functions[fn].flags)})
		}
		item := pairs{"library_name", name, "engine", "LUA", "functions", functions}
		if code {
			item = append(item, "library_code", lib.source)
		}
		out = append(out, item)
	}
	return out
}

func list(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

// effectiveFlags are a command's flags, for a call of a function the function's.
func (n *Node) effectiveFlags(sp *spec, args []string) flag {
	if sp.name == "FCALL" {
		switch f := n.function(args[0]); {
		case f == nil || f.has("no-writes"):
		case f.has("allow-oom"):
			return sp.flags | write
		default:
			return sp.flags | write | denyOOM
		}
	}
	return sp.flags
}

// splitKeys takes the number of keys, the keys and the rest apart.
func splitKeys(args []string) (keys, rest []string, err Error) {
	count, bad := integer(args[0])
	switch {
	case bad != nil:
		return nil, nil, "ERR Bad number of keys provided"
	case count > int64(len(args)-1):
		return nil, nil, "ERR Number of keys can't be greater than number of args"
	case count < 0:
		return nil, nil, "ERR Number of keys can't be negative"
	}
	return args[1 : 1+count], args[1+count:], ""
}

func (c *call) fcall(readOnly bool) any {
	n, name := c.n, c.args[0]
	f := n.function(name)
	if f == nil {
		return Error("ERR Function not found")
	}
	keys, args, err := splitKeys(c.args[1:])
	if err != "" {
		return err
	}
	if readOnly && !f.has("no-writes") {
		return Error("ERR Can not execute a script with write flag using *_ro command.")
	}
	reply := f.lib.run(f.body, &script{lib: f.lib, name: name, by: c.s, keys: keys, noWrites: f.has("no-writes")}, args)
	if h := n.world.opt.Hooks.Call; h != nil {
		h(Call{n, name, slices.Clone(keys), slices.Clone(args), plainReply(reply), n.frozenUS})
	}
	return reply
}
