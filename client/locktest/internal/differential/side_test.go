// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/resp"
)

// The connections of a side, by what they are for.
const (
	plain   = iota // RESP2
	quiet          // RESP3, tracking OPTIN NOLOOP
	loud           // RESP3, tracking OPTIN, told of its own changes too
	hearer         // RESP2, for subscriptions
	control        // RESP2, reads the keys after each step; not part of the game
	conns
)

var locks = []string{"diff:a", "diff:b"}

// side is one of the two servers.
type side struct {
	name  string
	dial  func() (net.Conn, error)
	conns [conns]*conn
	now   map[string]string // what stands for fenceOf and ownerOf, as it was after the last step
}

// begin empties the server and opens the connections.
func (s *side) begin() error {
	s.end()
	s.now = map[string]string{}
	for _, key := range locks {
		s.now[fenceOf(key)], s.now[ownerOf(key)] = "1", "a"
	}
	for i := range s.conns {
		nc, err := s.dial()
		if err != nil {
			return err
		}
		s.conns[i] = &conn{Conn: resp.New(nc)}
	}
	setup := []struct {
		conn  int
		words string
	}{
		{control, "FLUSHALL"}, {control, "DEBUG SET-ACTIVE-EXPIRE 0"},
		{quiet, "HELLO 3"}, {quiet, "CLIENT TRACKING ON OPTIN NOLOOP"}, {loud, "HELLO 3"}, {loud, "CLIENT TRACKING ON OPTIN"},
	}
	for _, x := range setup {
		if err := s.must(x.conn, strings.Fields(x.words)...); err != nil {
			return err
		}
	}
	return s.must(control, "FUNCTION", "LOAD", "REPLACE", functions.Source)
}

func (s *side) must(conn int, words ...string) error {
	got, err := s.conns[conn].ask(words)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	for _, v := range got {
		if f, failed := v.(failure); failed {
			return fmt.Errorf("%s: %.100q: %s", s.name, words, f)
		}
	}
	return nil
}

func (s *side) end() {
	for i, c := range s.conns {
		if c != nil {
			_ = c.Close()
			s.conns[i] = nil
		}
	}
}

// seen is what a step did on one side.
type seen struct {
	streams  [conns][]any // what arrived at each connection
	keys     map[string]map[string]any
	from, to time.Time
	err      error
}

// play does a step and looks at everything.
func (s *side) play(st step) seen {
	out := seen{from: time.Now(), keys: map[string]map[string]any{}}
	out.streams[st.conn], out.err = s.conns[st.conn].ask(s.resolve(st.cmds)...)
	time.Sleep(3 * moment)
	for _, key := range locks {
		if out.err != nil {
			break
		}
		out.err = s.look(key, &out)
	}
	for i, c := range s.conns[:control] {
		var more []any
		if out.err == nil {
			more, out.err = c.ask()
		}
		out.streams[i] = append(out.streams[i], more...)
	}
	out.to = time.Now()
	return out
}

// look reads a key. Keys whose time is over are deleted by that, at both sides.
func (s *side) look(key string, out *seen) error {
	fields := map[string]any{}
	for _, words := range [][]string{{"TYPE", key}, {"HGETALL", key}, {"PEXPIRETIME", key}} {
		got, err := s.conns[control].ask(words)
		if err != nil || len(got) != 1 {
			return fmt.Errorf("%s: %q: %v %w", s.name, words, got, err)
		}
		if list, ok := got[0].([]any); ok {
			for i := 0; i+1 < len(list); i += 2 {
				fields[list[i].(string)] = list[i+1]
			}
		} else {
			fields["("+words[0]+")"] = got[0]
		}
	}
	out.keys[key] = fields
	s.now[fenceOf(key)], s.now[ownerOf(key)] = "1", "a"
	if f, ok := fields["fence"].(string); ok {
		s.now[fenceOf(key)] = f
	}
	if o, ok := fields["owner"].(string); ok {
		s.now[ownerOf(key)] = o
	}
	return nil
}

// resolve puts this side's tokens and owners into commands.
func (s *side) resolve(cmds [][]string) [][]string {
	out := make([][]string, len(cmds))
	for i, cmd := range cmds {
		for _, w := range cmd {
			for mark, value := range s.now {
				w = strings.ReplaceAll(w, mark, value)
			}
			out[i] = append(out[i], w)
		}
	}
	return out
}

// both plays a step at both sides at once.
func both(tb testing.TB, a, b *side, st step) (seen, seen) {
	tb.Helper()
	got := make(chan seen)
	go func() { got <- a.play(st) }()
	y := b.play(st)
	x := <-got
	for _, s := range []seen{x, y} {
		if s.err != nil {
			tb.Fatal(s.err)
		}
	}
	return x, y
}
