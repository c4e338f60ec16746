// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
)

// prototypes are the sources that were compiled last. Nobody changes one, so all interpreters share
// them: each replica loads what its primary does, and each test what the one before it did.
var prototypes = struct {
	mu       sync.Mutex
	bySource map[string]*lua.FunctionProto
}{bySource: map[string]*lua.FunctionProto{}}

// compile compiles a source, unless it was compiled before.
func compile(L *lua.LState, source, name string) (*lua.LFunction, error) {
	p := &prototypes
	p.mu.Lock()
	defer p.mu.Unlock()
	if proto := p.bySource[source]; proto != nil {
		return L.NewFunctionFromProto(proto), nil
	}
	body, err := L.Load(strings.NewReader(source), name)
	if err != nil {
		return nil, err
	}
	if len(p.bySource) >= 16 {
		clear(p.bySource)
	}
	p.bySource[source] = body.Proto
	return body, nil
}
