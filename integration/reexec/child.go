// SPDX-License-Identifier: Apache-2.0

package reexec

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a Child may be silent.
const patience = time.Minute

// Child is a Process of a test: it is killed at the test's end, and a step that
// fails ends the test.
type Child struct {
	*Process
	tb testing.TB
}

// Spawn is Start under a test.
func Spawn(tb testing.TB, role string, job any, change ...func(*exec.Cmd)) *Child {
	tb.Helper()
	p, err := Start(role, job, change...)
	c := &Child{p, tb}
	c.must(err)
	tb.Cleanup(p.Kill)
	return c
}

// Hear blocks until the child prints its next line, which must begin so, and
// returns the rest.
func (c *Child) Hear(begin string) string {
	c.tb.Helper()
	silent := time.AfterFunc(patience, c.Kill)
	defer silent.Stop()
	line, err := c.Process.Hear()
	c.must(err)
	rest, ok := strings.CutPrefix(line, begin)
	if !ok {
		c.tb.Fatalf("the child said %q, not %q", line, begin)
	}
	return strings.TrimSpace(rest)
}

// Say writes a line to the child.
func (c *Child) Say(line string) { c.tb.Helper(); c.must(c.Process.Say(line)) }

// Signal sends a signal to the child.
func (c *Child) Signal(sig syscall.Signal) { c.tb.Helper(); c.must(c.Process.Signal(sig)) }

func (c *Child) must(err error) {
	c.tb.Helper()
	if err != nil {
		c.tb.Fatal(err)
	}
}
