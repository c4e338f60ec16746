package polyglot

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

const lease = "30000"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a server with the library, and returns its host and port.
func start(t *testing.T) (n *server.Node, host, port string) {
	t.Helper()
	n = server.Single(t, server.Owned()).Nodes()[0]
	do(t, n, "FUNCTION", "LOAD", "REPLACE", functions.Source)
	host, port, err := net.SplitHostPort(n.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return n, host, port
}

func do(t *testing.T, n *server.Node, command ...string) string {
	t.Helper()
	m, err := n.Do(context.Background(), command...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.ToString()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// All languages work on one counter at once. Without the lock they would lose counts, for each adds
// by GET and SET.
func TestMutualExclusionAmongLanguages(t *testing.T) {
	all := workers(t)
	n, host, port := start(t)
	const rounds = 40
	tokens := make([][]string, len(all))
	var wg sync.WaitGroup
	for i, w := range all {
		wg.Go(func() {
			var err error
			tokens[i], err = w.run(host, port, "work", "lock:poly", "counter", w.name, strconv.Itoa(rounds))
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if got, want := do(t, n, "GET", "counter"), strconv.Itoa(rounds*len(all)); got != want {
		t.Errorf("the counter is %s, not %s", got, want)
	}
	var together []string
	for i, w := range all {
		// of equal length, so their order is that of numbers
		if len(tokens[i]) != rounds || !slices.IsSorted(tokens[i]) {
			t.Errorf("%s got the tokens %v", w.name, tokens[i])
		}
		together = append(together, tokens[i]...)
	}
	slices.Sort(together)
	if unique := slices.Compact(slices.Clone(together)); len(unique) != rounds*len(all) {
		t.Errorf("of %d tokens %d differ", len(together), len(unique))
	}
}

// Each language waits for a lock that the one before it holds, and gets it when that one gives it
// back.
func TestLanguagesHandTheLockOn(t *testing.T) {
	all := workers(t)
	_, host, port := start(t)
	call := func(w worker, function string, args ...string) []string {
		t.Helper()
		lines, err := w.run(append([]string{host, port, "call", function, "lock:poly"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	expect := func(w worker, got []string, want ...string) {
		t.Helper()
		for i := range want {
			if len(got) <= i || want[i] != "*" && got[i] != want[i] {
				t.Fatalf("%s got %q, not %q", w.name, got, want)
			}
		}
	}
	holder := all[0]
	token := call(holder, functions.Acquire, holder.name, lease)
	expect(holder, token, "1", "*", lease, "1")
	for _, next := range append(all[1:], all[0]) {
		id := next.name + " again"
		expect(next, call(next, functions.Acquire, id, lease), "0", "*", "*", "0")
		expect(next, call(next, functions.Wait, id, lease, ""), "0", "*", "*", "1", "*")
		expect(next, call(next, functions.Inspect), "1", "*", "1", token[1], "*", "1")
		owner := call(next, functions.Inspect)[1]
		if !strings.HasPrefix(owner, holder.name) {
			t.Fatalf("%s sees the owner %q, not %s", next.name, owner, holder.name)
		}
		expect(holder, call(holder, functions.Release, owner), "1", "0")
		// it has the lock, or takes it: starting a process may take 2 s
		got := call(next, functions.Wait, id, lease, "")
		expect(next, got, "1", "*", lease, "1")
		if got[1] <= token[1] {
			t.Fatalf("%s got token %s after %s", next.name, got[1], token[1])
		}
		holder, token = next, got
	}
	expect(holder, call(holder, functions.Release, holder.name+" again"), "1", "0")
	expect(holder, call(holder, functions.Inspect), "0", "", "0", "0", "0", "0")
}
