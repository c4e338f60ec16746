// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// table is that of the package's comment: what an event does in a state.
var table = readTable()

var kindNames = strings.Fields("Enter End Yes Grant No NoAnswer Denied Timer Release Close")

func readTable() (cells [Close + 1][Confirming + 1]string) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		panic(err)
	}
	kind := -1
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimPrefix(strings.TrimSpace(line), "//"), "|")
		if len(columns) != int(Confirming)+2 {
			continue
		}
		switch name := strings.TrimSpace(columns[0]); {
		case name == "event":
			continue
		case name != "":
			if kind++; kind >= len(kindNames) || name != kindNames[kind] {
				panic("the table has the row " + name)
			}
		}
		for s, c := range columns[1:] {
			cells[kind][s] = strings.TrimSpace(cells[kind][s] + " " + strings.TrimSpace(c))
		}
	}
	return cells
}

// TestExplore walks through all scopes: no check may fail, and each cell of the table in which
// something happens must be reached.
func TestExplore(t *testing.T) {
	var mu sync.Mutex
	var cells coverage
	total, left := 0, 0
	t.Run("scopes", func(t *testing.T) {
		for _, c := range scopes() {
			if c.wide && os.Getenv("HOLDFAST_EXPLORE") == "" {
				left++
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				n, bad := explore(&c, 3_000_000)
				if bad != "" {
					t.Error(bad)
				}
				t.Logf("%d states", n)
				mu.Lock()
				defer mu.Unlock()
				total += n
				for s := range cells {
					for k := range cells[s] {
						for o := range 2 {
							cells[s][k][o] = cells[s][k][o] || c.cells[s][k][o]
						}
					}
				}
			})
		}
	})
	t.Logf("%d states; %d wide scopes are left out, unless HOLDFAST_EXPLORE is set", total, left)
	for k, name := range kindNames {
		got := ""
		for s := range cells {
			i := 0
			for o := range 2 {
				if cells[s][k][o] {
					i += o + 1
				}
			}
			got += ".xob"[i : i+1]
			if table[k][s] == "" || table[k][s] != "-" && i == 0 {
				t.Errorf("%s in state %d, %q, was not reached", name, s, table[k][s])
			}
			if (Kind(k) == Grant || Kind(k) == Enter) && i < 2 {
				t.Errorf("%s of another owner, or of a try, in state %d was not reached", name, s)
			}
		}
		t.Logf("%-8s %s", name, got)
	}
}

// TestMutations breaks the machine, one rule at a time: the walk must see it.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the machine several times")
	}
	source, err := os.ReadFile("machine.go")
	require.NoError(t, err)
	path, err := filepath.Abs("machine.go")
	require.NoError(t, err)
	for _, m := range []struct{ what, scope, seen, was, becomes string }{
		{"an owner is used again after its undo", "guards", "owner used again", "	m.owner, m.token = \"\", 0\n", "	m.token = 0\n"},
		{"a guard is inherited", "guards", "a guarded waiter has an unguarded grant", " && w.Terms.Guard == t.Guard", ""},
		{"h is replaced, not detached", "expired", "is to change nothing",
			"m.state == Held && e.Owner == m.h.Owner && e.Token == m.h.Token", "m.state == Held"},
		{"the head's context ends: the place is dropped while others wait", "contexts end", "given up while others wait",
			"	case m.state == Trying || !m.fits", "	case first:\n		m.drop()\n		m.ask()\n	case m.state == Trying || !m.fits"},
		{"a grant that crosses the last waiter's end is not undone", "alone", "stuck", "m.owner != \"\" && m.owes", "false"},
		{"an owner with a call that may run late is left only once", "late, doubled", "stuck",
			"func (m *Machine) do(a Action) {", "func (m *Machine) do(a Action) { a.Again = false;"},
		{"a lost reply to wait is answered with a fresh owner", "lost, doubled", "left behind",
			"silent(unknown bool) {\n", "silent(unknown bool) {\n	m.owner = \"\"\n"},
		{"a pass beyond a head with other terms", "guards", "passed over the head", "	if w := m.head(); w != nil && *w.Terms",
			"	w := m.head()\n	for w != nil && w.next != m.fifo.first && *w.Terms != *m.h.Terms {\n		w = w.next\n	}\n	if w != nil && *w.Terms"},
		{"no wait after a release while others wait", "minima", "absent queue", "	m.h = Action{}\n	m.ask()\n}\n\n// close",
			"	m.h, m.state = Action{}, Absent\n}\n\n// close"},
		{"a try is refused from memory in an outage", "tries", "busy in an outage", " && m.now-m.heardAt < memory", ""},
		{"a wait is made for a waiter whose deadline is over", "deadlines", "deadline is over", "w.Until == 0 || m.now < w.Until", "true"},
		{"a grant that crosses the first answer is forgotten", "contexts end", "only a timer helps",
			"		m.token, m.top = e.Token, e.Top\n", ""},
	} {
		t.Run(strings.ReplaceAll(m.what, " ", "-"), func(t *testing.T) {
			require.Equal(t, 1, strings.Count(string(source), m.was), "%q must be there once", m.was)
			dir := t.TempDir()
			mutant := filepath.Join(dir, "machine.go")
			require.NoError(t, os.WriteFile(mutant, []byte(strings.Replace(string(source), m.was, m.becomes, 1)), 0o600))
			overlay := filepath.Join(dir, "overlay.json")
			text, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutant}})
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(overlay, text, 0o600))
			scope := "TestExplore/scopes/^" + strings.ReplaceAll(m.scope, " ", "_") + "$"
			cmd := exec.Command("go", "test", "-vet=off", "-count=1", "-overlay", overlay, "-run", scope, ".")
			cmd.Env = append(os.Environ(), "HOLDFAST_EXPLORE=1")
			out, err := cmd.CombinedOutput()
			require.Error(t, err)
			require.Regexp(t, m.scope+": .*"+m.seen, string(out))
		})
	}
}
