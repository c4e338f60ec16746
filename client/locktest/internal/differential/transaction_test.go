package differential

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/integration/server"
)

// transactions are refused, when their commands are queued or when they are to run. '!' is a command
// of another connection.
var transactions = map[string]string{
	"a wrong number of words":   "MULTI; HGET diff:a; HSET diff:a f v; EXEC; EXEC",
	"too many words for EXEC":   "MULTI; DBSIZE; EXEC x; EXEC",
	"for DISCARD":               "MULTI; DBSIZE; DISCARD x; EXEC",
	"for MULTI":                 "MULTI x; DBSIZE; EXEC",
	"nested":                    "MULTI; MULTI; DBSIZE; EXEC",
	"no right to queue":         "! ACL SETUSER tenant +multi +exec; AUTH tenant pw; MULTI; PTTL x:a; PTTL diff:a; EXEC",
	"no right to EXEC":          "! ACL SETUSER tenant +multi -exec; AUTH tenant pw; MULTI; PTTL diff:a; EXEC; PTTL diff:a",
	"subscribed":                "SUBSCRIBE diff:c1; EXEC",
	"no memory for the queue":   "MULTI; ! CONFIG SET maxmemory 1; DBSIZE; EXEC",
	"no memory for a write":     "MULTI; DBSIZE; HSET diff:a f v; ! CONFIG SET maxmemory 1; EXEC; EXEC",
	"no memory for a function":  "MULTI; FCALL holdfast_acquire 1 diff:a o 60000; ! CONFIG SET maxmemory 1; EXEC",
	"one that needs no memory":  "MULTI; FCALL holdfast_release 1 diff:a o; ! CONFIG SET maxmemory 1; EXEC",
	"reading needs none either": "MULTI; DBSIZE; ! CONFIG SET maxmemory 1; EXEC",
}

func TestTransactionsThatAreRefused(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		m := newMatch(t, f)
		for name, script := range transactions {
			t.Run(name, func(t *testing.T) {
				a, b := m.real.script(t, script), m.embedded.script(t, script)
				if show(a) != show(b) {
					t.Errorf("%s\nreal      %s\nembedded  %s", script, show(a), show(b))
				}
			})
		}
	})
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
