package queue

import (
	"os"
	"strings"
	"sync"
	"testing"
)

// table is that of the package's comment: what an event does in a state.
var table = readTable()

var kindNames = strings.Fields("Enter Try End Yes Grant No NoAnswer Denied Timer Release Decline Lost Close")

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
			if Kind(k) == Grant && i < 2 {
				t.Errorf("a grant of another owner in state %d was not reached", s)
			}
		}
		t.Logf("%-8s %s", name, got)
	}
}

// TestMutations breaks the machine, one rule at a time: the walk must see it.
func TestMutations(t *testing.T) {
	for _, m := range []struct {
		what, scope, seen string
		mut               mutation
	}{
		{"an owner is used again after its undo", "contexts end", "owner used again", reusesOwner},
		{"a guard is inherited", "guards", "a guarded waiter has an unguarded grant", inheritsGuard},
		{"h is replaced, not detached", "expired", "without the lock", replaces},
		{"the head's context ends: the place is dropped while others wait", "contexts end", "given up while others wait", dropsPlace},
		{"a grant that crosses the last waiter's end is not undone", "alone", "stuck", noUndo},
		{"an owner with a call that may run late is left only once", "late, doubled", "stuck", leavesOnce},
		{"a lost reply to wait is answered with a fresh owner", "lost, doubled", "left behind", freshAfterFail},
		{"a pass beyond a head with other terms", "guards", "passed over the head", passesBeyond},
		{"no wait after a release while others wait", "minima", "absent queue", noWaitAfter},
		{"a try is refused from memory in an outage", "tries", "busy in an outage", busyInOutage},
		{"the agent asks for a waiter whose deadline is over", "deadlines", "deadline is over", expiredHead},
		{"a grant that crosses the first answer is forgotten", "contexts end", "only a timer helps", forgetsEarly},
	} {
		for _, c := range scopes() {
			if !strings.HasPrefix(c.name, m.scope) {
				continue
			}
			c.mut = m.mut
			_, bad := explore(&c, 1_000_000)
			caught, _, _ := strings.Cut(bad, "\n")
			if !strings.Contains(caught, m.seen) {
				t.Errorf("%s: %q", m.what, caught)
			}
			t.Logf("%-65s %s", m.what, caught)
			break
		}
	}
}
