// SPDX-License-Identifier: Apache-2.0

package holdfastgocron_test

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	holdfastgocron "github.com/holdfast-go/holdfast/client/adapter/gocron"
)

const module = "github.com/go-co-op/gocron/v2"

// gocron's own tests of lockers and electors, with the adapter in place of their doubles.
func TestTheirTests(t *testing.T) {
	program := theirs(t)

	t.Run("of one fleet", func(t *testing.T) {
		t.Parallel()
		p := &processes{t: t, prefix: rand.Text()}
		out, err := p.run(program)
		ran, passed := count(out, `(?m)^=== RUN .*/`), count(out, `(?m)^ +--- PASS: .*/`)
		// err too: some of them fail by their parent, and so do goroutines that are left.
		if err != nil || ran < 4 || passed != ran {
			t.Errorf("%v, %d of %d passed, of at least 4:\n%s", err, passed, ran, out)
		}
		for _, question := range []string{"leads", "lock", "unlock"} {
			if p.asked[question] == 0 {
				t.Errorf("nobody asked %q", question)
			}
		}
	})

	// So that they do see it when each process has the lock: two of three should be refused, and none
	// is, in all but the test without locks.
	t.Run("of processes that share nothing", func(t *testing.T) {
		t.Parallel()
		p := &processes{t: t, prefix: rand.Text(), apart: true}
		out, err := p.run(program)
		ran, failed := count(out, `(?m)^=== RUN .*/`), count(out, `expected: 2\s+actual *: 0`)
		if err == nil || ran < 4 || failed != ran-1 {
			t.Errorf("%v, %d of %d failed, not all but one:\n%s", err, failed, ran, out)
		}
	})
}

func count(text, pattern string) int {
	return len(regexp.MustCompile(pattern).FindAllString(text, -1))
}

// theirs builds gocron's tests, from a copy of the module: a file of the module cache cannot be
// overlaid. Their doubles give way to testdata/double_test.go, which asks processes, and the seconds in which
// all must have happened to minutes: the machine may be busy.
func theirs(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "gocron")
	original := strings.TrimSpace(command(t, "go", "list", "-m", "-f", "{{.Dir}}", module))
	if err := os.CopyFS(source, os.DirFS(original)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(source, "scheduler_test.go")
	text := read(t, file)
	for theirs, ours := range map[string]string{
		"&testElector{notLeader: notLeader}": `holdfast("elector", notLeader)`,
		"&testLocker{notLocked: notLocked}":  `holdfast("locker", notLocked)`,
		"time.After(time.Second)":            "time.After(time.Minute)",
		"time.After(3 * time.Second)":        "time.After(time.Minute)",
		"WithStopTimeout(time.Second)":       "WithStopTimeout(time.Minute)",
	} {
		if !strings.Contains(text, theirs) {
			t.Fatalf("%s has no %s any more: put ours in its place in another way", file, theirs)
		}
		text = strings.ReplaceAll(text, theirs, ours)
	}
	write(t, file, text)
	write(t, filepath.Join(source, "holdfast_double_test.go"), read(t, "testdata/double_test.go"))

	// With the versions and sums of this module, which it does not change.
	mod := filepath.Join(dir, "go.mod")
	write(t, mod, read(t, "go.mod"))
	write(t, filepath.Join(dir, "go.sum"), read(t, "go.sum"))
	command(t, "go", "mod", "edit", "-replace", module+"="+source, mod)
	program = filepath.Join(dir, "theirs.test")
	command(t, "go", "test", "-c", "-mod=mod", "-modfile", mod, "-o", program, module)
	return program
}

// processes answer gocron's tests. Each has a client and an adapter of its own.
type processes struct {
	t      *testing.T
	prefix string
	apart  bool // each has locks of its own, and so is never refused

	mu    sync.Mutex
	asked map[string]int
}

// run runs gocron's tests.
func (p *processes) run(program string) (out string, err error) {
	p.t.Helper()
	p.asked = map[string]int{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			all.Go(func() {
				defer conn.Close()
				if err := p.process(conn, n/3, n%3); err != nil {
					p.t.Error(err)
				}
			})
		}
	})
	cmd := exec.CommandContext(p.t.Context(), program, "-test.v", "-test.timeout=5m",
		"-test.run=^TestScheduler_WithDistributed$")
	cmd.Env = append(os.Environ(), "HOLDFAST_PROCESSES="+l.Addr().String())
	b, err := cmd.CombinedOutput()
	l.Close()
	all.Wait()
	return string(b), err
}

// process is the i-th of those that share a double. It ends with the connection.
func (p *processes) process(conn net.Conn, double, i int) error {
	ctx := p.t.Context()
	prefix := fmt.Sprintf("%s:%d:", p.prefix, double)
	if p.apart {
		prefix = fmt.Sprintf("%s%d:", prefix, i)
	}
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}},
		client.Config{AutoLoad: true, Prefix: prefix})
	if err != nil {
		return err
	}
	defer c.Close()
	// Their jobs begin at the same moment, and however late one does, it is the same run.
	l, err := holdfastgocron.NewLocker(c, time.Minute)
	if err != nil {
		return err
	}
	var e *holdfastgocron.Elector
	var lock gocron.Lock
	for in := bufio.NewScanner(conn); in.Scan(); {
		question, key, _ := strings.Cut(in.Text(), " ")
		p.mu.Lock()
		p.asked[question]++
		p.mu.Unlock()
		var no error
		switch question {
		case "locker":
		case "elector": // it leads before the next one begins, or is in line: their jobs do not wait
			e = holdfastgocron.NewElector(c, "reports")
			defer e.Close()
			for !leads(e) {
				info, err := c.Inspect(ctx, "reports")
				if err != nil {
					return err
				}
				if i > 0 && info.Waiters == i {
					break
				}
			}
		case "leads":
			no = e.IsLeader(ctx)
			if no != nil && errors.Unwrap(no) != holdfastgocron.ErrNotLeader {
				return no // with a reason: a fault
			}
		case "lock":
			lock, no = l.Lock(ctx, key)
			if no != nil && !errors.Is(no, client.ErrBusy) {
				return no
			}
		case "unlock":
			if err := lock.Unlock(ctx); err != nil {
				return err
			}
		}
		answer := "yes"
		if no != nil {
			answer = no.Error()
		}
		if _, err := fmt.Fprintln(conn, answer); err != nil {
			return err
		}
	}
	return nil
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, &problems)
	}
	return string(out)
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
