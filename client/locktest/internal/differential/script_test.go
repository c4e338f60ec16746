// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/integration/server"
)

// full are commands to a server without memory.
var full = map[string]string{
	"a write":             "! CONFIG SET maxmemory 1; HSET diff:a f v",
	"a function":          "! CONFIG SET maxmemory 1; FCALL holdfast_acquire 1 diff:a o 60000",
	"one that needs none": "! CONFIG SET maxmemory 1; FCALL holdfast_release 1 diff:a o",
	"reading":             "! CONFIG SET maxmemory 1; DBSIZE",
}

func TestAServerWithoutMemory(t *testing.T) {
	alike(t, full, func(t *testing.T, s *side, script string) any { return s.script(t, script) })
}

// bodies are those of functions that are called with the key of a hash.
var bodies = map[string]string{
	"a wrong type":         "return redis.call('GET', keys[1])",
	"one that is returned": "return redis.pcall('GET', keys[1])",
	"one that is caught":   "local ok, e = pcall(redis.call, 'GET', keys[1]) return e",
	"too few words":        "return redis.call('GET')",
	"a word of no kind":    "return redis.call('SET', keys[1], {})",
	"not from functions":   "return redis.call('AUTH', 'x')",
	"an error's code":      "return redis.error_reply('foo')",
	"no command":           "return redis.acl_check_cmd('NOPE')",
	"a new global":         "x = 1",
	"no such global":       "return nope",
	"numbers": `local out = {}
		for i, text in ipairs({ '18446744073709551616', '9007199254740993', '007', '12x', '', '1e3', ' 5 ', '0x10', '-3', 'inf' }) do
			local n = tonumber(text)
			out[i] = n and (n == 1/0 and 'inf' or string.format('%.17g', n)) or 'nil'
		end
		for _, n in ipairs({ -7, 2^60 + 512, 0 }) do out[#out + 1] = ('%d'):format(n) end
		return out`,
	"packed fields": `local s = struct.pack('<ddI1I2', 1.5, 0/0, 255, 65535)
		local a, nan, c, d, at = struct.unpack('<ddI1I2', s)
		return { #s, tostring(a), tostring(nan == nan), tostring(nan > 1), tostring(nan < 1), c, d, at }`,
	// Those that the embedded Redis matches by itself, and others.
	"patterns": `local out = {}
		for _, pattern in ipairs({ '^%C*$', '^%C+$', '^%d+$', '^%w+$', '^[1-9]%d*$', '^%s*$' }) do
			for _, s in ipairs({ '', '0', '10', '1x', 'xY9', 'a b', '12\n', '\1', '\127', 'h\195\169llo', '\2551' }) do
				local from, to = s:find(pattern)
				out[#out + 1] = tostring(from) .. ' ' .. tostring(to)
			end
		end
		return out`,
}

func TestFunctions(t *testing.T) {
	alike(t, bodies, func(t *testing.T, s *side, body string) any {
		source := "#!lua name=t\nredis.register_function('t', function(keys, args) " + body + " end)"
		return []any{s.script(t, "HSET diff:a f v"), s.asks(t, "FUNCTION", "LOAD", "REPLACE", source), s.asks(t, "FCALL", "t", "1", "diff:a")}
	})
}

// unnamed takes from an error what Valkey does not call Redis any more.
var unnamed = strings.NewReplacer("Lua redis lib command arguments", "Command arguments", "calling Redis command", "calling command",
	"redis.acl_check_cmd", "server.acl_check_cmd")

// alike plays something at both sides, and fails the test if they answer differently.
func alike(t *testing.T, all map[string]string, play func(t *testing.T, s *side, what string) any) {
	t.Helper()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		m := newMatch(t, f)
		for name, what := range all {
			t.Run(name, func(t *testing.T) {
				a, b := unnamed.Replace(show(play(t, m.real, what))), unnamed.Replace(show(play(t, m.embedded, what)))
				if a != b {
					t.Errorf("%s\nreal      %s\nembedded  %s", what, a, b)
				}
			})
		}
	})
}

// asks sends a command and returns what arrives first.
func (s *side) asks(t *testing.T, words ...string) any {
	t.Helper()
	reply, err := s.conns[control].one(words...)
	if err != nil {
		t.Fatalf("%s: %q: %v", s.name, words, err)
	}
	return reply
}

// script sends commands one by one to an empty server, and returns the replies.
func (s *side) script(t *testing.T, text string) (out []any) {
	t.Helper()
	if err := s.begin(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(text+"; ! CONFIG SET maxmemory 0", "; ") {
		conn := plain
		if words, other := strings.CutPrefix(line, "! "); other {
			conn, line = control, words
		}
		reply, err := s.conns[conn].one(strings.Fields(line)...)
		if err != nil {
			t.Fatalf("%s: %s: %v", s.name, line, err)
		}
		out = append(out, reply)
	}
	return out
}
