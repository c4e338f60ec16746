// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

func TestRunEndsAsTheCommand(t *testing.T) {
	_, where := loaded(t)
	plain, noShebang := filepath.Join(t.TempDir(), "plain"), filepath.Join(t.TempDir(), "no-shebang")
	require.NoError(t, os.WriteFile(noShebang, []byte("echo \"$1\"\nexit 3\n"), 0o700))
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	for name, c := range map[string]struct {
		args []string
		code int
		out  string
	}{
		"done":                {[]string{"a", "--", "true"}, 0, ""},
		"its status":          {[]string{"a", "--", "sh", "-c", "exit 7"}, 7, ""},
		"a signal":            {[]string{"a", "--", "sh", "-c", "kill -TERM $$"}, 143, ""},
		"130 by itself":       {[]string{"a", "--", "sh", "-c", "exit 130"}, 130, ""}, // a signal would end this process
		"not found":           {[]string{"a", "--", "no-such-command"}, 127, ""},
		"no such path":        {[]string{"a", "--", "/no/such/command"}, 127, ""},
		"not executable":      {[]string{"a", "--", plain}, 126, ""},
		"no #!":               {[]string{"a", "--", noShebang, "x y"}, 3, "x y\n"},
		"without dashes":      {[]string{"a", "echo", "-n", "x"}, 0, "x"},
		"flags before":        {[]string{"-n", "a", "echo", "--wait", "x"}, 0, "--wait x\n"},
		"flags behind":        {[]string{"a", "-n", "--wait=0", "--", "echo", "--wait"}, 0, "--wait\n"},
		"flock's flags":       {[]string{"--nonblock", "-w", "0", "-E", "9", "a", "echo", "x"}, 0, "x\n"},
		"a shell, as flock":   {[]string{"a", "-c", "echo a 'b c'; exit 3"}, 3, "a b c\n"},
		"a shell, before":     {[]string{"-c", "exit 3", "a"}, 3, ""},
		"once":                {[]string{"one", "--once", "1h", "--", "sh", "-c", "echo ran; exit 4"}, 4, "ran\n"},
		"no name":             {nil, 64, ""},
		"an empty name":       {[]string{"", "--", "true"}, 64, ""},
		"no command":          {[]string{"a"}, 64, ""},
		"no command, dashes":  {[]string{"a", "--"}, 64, ""},
		"-c and a command":    {[]string{"a", "-c", "true", "--", "true"}, 64, ""},
		"an unknown flag":     {[]string{"a", "--bogus", "--", "true"}, 64, ""},
		"a bad duration":      {[]string{"a", "-w", "soon", "--", "true"}, 64, ""},
		"a negative duration": {[]string{"a", "-w", "-1", "--", "true"}, 64, ""},
		"a limit":             {[]string{"l", "--limit", "2", "-c", "echo $HOLDFAST_SLOT"}, 0, "1\n"},
		"shared":              {[]string{"s", "-s", "-n", "-c", "echo $HOLDFAST_SLOT"}, 0, "1\n"},
		"alone":               {[]string{"a", "-c", "echo $HOLDFAST_SLOT"}, 0, "0\n"},
		"a limit of none":     {[]string{"a", "--limit", "0", "--", "true"}, 64, ""},
		"a limit, shared":     {[]string{"a", "--limit", "2", "-s", "--", "true"}, 64, ""},
		"once, with a limit":  {[]string{"a", "--once", "1h", "--limit", "2", "--", "true"}, 64, ""},
		"once, shared":        {[]string{"a", "--once", "1h", "--shared", "--", "true"}, 64, ""},
		"both":                {[]string{"a", "-n", "-w", "3", "--", "true"}, 64, ""},
		"once, waiting":       {[]string{"a", "--once", "1h", "-w", "3", "--", "true"}, 64, ""},
		"a short lease":       {[]string{"a", "--lease", "1ms", "--", "true"}, 64, ""},
		"an exit code":        {[]string{"a", "-E", "256", "--", "true"}, 64, ""},
		"json":                {[]string{"a", "--json", "--", "true"}, 64, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := where.do(t, "run", c.args...)
			require.Equal(t, c.code, r.code, r)
			require.Equal(t, c.out, r.out, r)
			failed := c.code == 64 || c.code == 126 || c.code == 127
			require.Equal(t, failed, r.errors != "", "stderr is the command's, unless there is something to say: %v", r)
		})
	}
}

func TestRunHelp(t *testing.T) {
	for _, args := range [][]string{{"run", "--help"}, {"run", "a", "--help"}, {"help", "run"}} {
		r := holdfast(t, nil, args...)
		require.Equal(t, 0, r.code, r)
		require.Contains(t, r.out, "124  --max-hold")
		require.NotContains(t, r.out, "verify:", "only its own codes")
	}
}

func TestRunWithoutALock(t *testing.T) {
	t.Parallel()
	dead := server.Single(t, server.Owned())
	require.NoError(t, dead.Nodes()[0].Kill())
	bare := server.Single(t, server.Owned())
	guarded := server.Single(t, server.Owned(), server.WithConfig("requirepass", "s3cret"))
	hanging := server.Single(t, server.Owned())
	require.NoError(t, hanging.Nodes()[0].Pause())
	for name, c := range map[string]struct {
		addr string
		code int
		says string
	}{
		"no server":   {dead.Addrs()[0], 69, dead.Addrs()[0]},
		"a silent":    {hanging.Addrs()[0], 69, ""},
		"no library":  {bare.Addrs()[0], 78, "holdfast load"},
		"no password": {guarded.Addrs()[0], 77, "HOLDFAST_PASSWORD"},
	} {
		t.Run(name, func(t *testing.T) {
			r := holdfast(t, nil, "run", "a", "--addr", c.addr, "--timeout", "5s", "--", "echo", "ran")
			require.Equal(t, c.code, r.code, r)
			require.Empty(t, r.out)
			require.Contains(t, r.errors, c.says)
		})
	}
	require.NoError(t, hanging.Nodes()[0].Resume())
}

func TestRunTellsTheCommandItsToken(t *testing.T) {
	_, where := loaded(t)
	var last int64
	for range 2 {
		r := where.do(t, "run", "order:42", "--label", "ship", "--",
			"sh", "-c", `echo "$HOLDFAST_FENCE $HOLDFAST_LOCK $HOLDFAST_OWNER"`)
		require.Equal(t, 0, r.code, r)
		said := strings.Fields(r.out)
		require.Len(t, said, 3)
		token, err := strconv.ParseInt(said[0], 10, 64)
		require.NoError(t, err)
		require.Greater(t, token, last)
		last = token
		require.Equal(t, "order:42", said[1])
		require.True(t, strings.HasSuffix(said[2], ":ship"), said[2])
	}
}

func TestRunUnderAHeldLock(t *testing.T) {
	_, where := loaded(t)
	h := holding(t, where, "busy", "--label", "nightly")
	do := func(args ...string) result {
		return where.do(t, "run", append(args, "--", "echo", "ran")...)
	}
	// The waits are long enough for the server's answer on a busy machine: a shorter one could not tell
	// that from silence, which is 69.
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"busy", "-n"}, 1},
		{[]string{"busy", "--wait", "3s"}, 1},
		{[]string{"busy", "-w", "0"}, 1},
		{[]string{"busy", "-n", "-E", "9"}, 9},
		{[]string{"busy", "-w", "2.9", "-E", "0"}, 0},
	} {
		r := do(c.args...)
		require.Equal(t, result{c.code, "", ""}, r, "%v", c.args)
	}
	for _, args := range [][]string{{"-n"}, {"-w", "3"}} {
		r := do(append(args, "--print-holder", "busy")...)
		require.Equal(t, 1, r.code, r)
		require.Contains(t, r.errors, "(nightly) has it since")
	}
	require.Equal(t, 0, do("other", "-n").code, "another lock")
	h.finish()
	r := do("busy", "-n", "--verbose")
	require.Equal(t, 0, r.code, "it was given back: %v", r)
	require.Equal(t, "ran\n", r.out)
	require.Contains(t, r.errors, "taken after")
}

// waiters waits until so many wait for a lock.
func waiters(t *testing.T, where place, name string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		r := where.do(t, "inspect", name, "--json")
		var lock struct{ Waiters int }
		return json.Unmarshal([]byte(r.out), &lock) == nil && lock.Waiters == n
	}, soon, pollEvery)
}

func TestRunInOrder(t *testing.T) {
	_, where := loaded(t)
	first := holding(t, where, "line")
	second := begin(t, where, "line", "--", "sh", "-c", "echo second; cat")
	waiters(t, where, "line", 1)
	third := begin(t, where, "line", "--", "sh", "-c", "echo third; cat")
	waiters(t, where, "line", 2)
	first.finish()
	second.hear("second")
	waiters(t, where, "line", 1)
	second.finish()
	third.hear("third")
	third.finish()
}

func TestRunOnce(t *testing.T) {
	_, where := loaded(t)
	do := func(args ...string) result {
		return where.do(t, "run", append(args, "--once", "1h", "nightly", "--", "echo", "ran")...)
	}
	require.Equal(t, ran, do("--label", "first"))
	require.Equal(t, result{0, "", ""}, do(), "for cron: nothing to say")
	require.Equal(t, result{9, "", ""}, do("-E", "9"))
	r := do("--print-holder")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.errors, "(first) has it since")
}

func TestRunHoldsForATime(t *testing.T) {
	_, where := loaded(t)
	start := time.Now()
	r := where.do(t, "run", "kept", "--min-hold", "1h", "--", "true")
	require.Equal(t, 0, r.code, r)
	require.Less(t, time.Since(start), soon, "nobody waits for that")
	r = where.do(t, "run", "kept", "-n", "--", "true")
	require.Equal(t, 1, r.code, r)
}

// While nobody gets the interval, no host runs the command: that is not for cron to be silent about.
func TestRunOnceThatNobodyGets(t *testing.T) {
	_, where := loaded(t)
	r := where.do(t, "run", "--once", "1h", "--guard", "40s", "nightly", "--", "echo", "ran")
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "nobody gets it yet")
	require.Empty(t, r.out)
}
