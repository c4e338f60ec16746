package redis

import (
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// prototypes are the bodies that were compiled last. Nobody changes one, so all interpreters share
// them: each replica loads what its primary does, and each test what the one before it did.
var prototypes struct {
	mu     sync.Mutex
	byBody map[string]*lua.FunctionProto
}

// compiled compiles the body of a library, unless it was compiled before.
func compiled(body string) (*lua.FunctionProto, error) {
	p := &prototypes
	p.mu.Lock()
	defer p.mu.Unlock()
	if proto := p.byBody[body]; proto != nil {
		return proto, nil
	}
	chunk, err := parse.Parse(strings.NewReader(body), "user_function")
	if err != nil {
		return nil, err
	}
	proto, err := lua.Compile(chunk, "user_function")
	if err != nil {
		return nil, err
	}
	if p.byBody == nil || len(p.byBody) >= 16 {
		p.byBody = map[string]*lua.FunctionProto{}
	}
	p.byBody[body] = proto
	return proto, nil
}
