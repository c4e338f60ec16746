// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// shellBlock is a block of commands in a page: fenced as sh or console, or indented and beginning
// with a command that readers have.
type shellBlock struct {
	page string
	line int
	text string
}

var (
	fence    = regexp.MustCompile("^ *```(\\w*)$")
	commands = regexp.MustCompile(`^    (?:\$ )?(?:redis-cli|holdfast|make|go|FCALL|GET) `)
)

func shellBlocks(t *testing.T) []shellBlock {
	t.Helper()
	var found []shellBlock
	for _, path := range pages(t) {
		lines := strings.Split(page(t, path), "\n")
		for i := 0; i < len(lines); i++ {
			b := shellBlock{page: path, line: i + 1}
			begin := i
			switch m := fence.FindStringSubmatch(lines[i]); {
			case m != nil:
				for i++; !fence.MatchString(lines[i]); i++ {
				}
				if !slices.Contains([]string{"sh", "bash", "shell", "console"}, m[1]) {
					continue
				}
				b.text = strings.Join(lines[begin+1:i], "\n")
			case commands.MatchString(lines[i]):
				for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "    ") {
					i++
				}
				b.text = strings.ReplaceAll("\n"+strings.Join(lines[begin:i+1], "\n"), "\n    ", "\n")[1:]
			default:
				continue
			}
			found = append(found, b)
		}
	}
	return found
}

// elsewhere says why TestTheShellBlocksRun does not run a block. One of the last two is set.
type elsewhere struct {
	page, begins string // what the block begins with
	test         string // the directory and the name of the test that runs it
	not          string // why it cannot be run
}

var others = []elsewhere{
	{"README.md", "A$", "integration/readme TestTheTrialRuns", ""},
	{"README.md", "go mod edit", "integration/readme TestTheProgramRuns", ""},
	{"functions/README.md", "FCALL holdfast_acquire 1 lock:order:42 worker-7 30000 GUARD 35000   # 0",
		"integration/failure TestGuardedLocksSurviveRestarts", ""}, // it takes as long as the guard
	{"docs/adapters.md", "go get", "", "nothing is published yet"},
	{"docs/command.md", "$ holdfast", "loader/cmd/holdfast TestThePageIsTrue", ""},
	{"docs/command.md", "holdfast ui", "loader/cmd/holdfast TestThePage", ""},
	{"docs/exporter.md", "HOLDFAST_PASSWORD=", "loader/cmd/holdfast TestTheExporter", ""},
	{"docs/doctor.md", "$ holdfast doctor --addr", "",
		"a sample of what it prints of a deployment with a fault; TestEveryKindCanBeFound finds each fault"},
	{"docs/run.md", "$ holdfast run", "loader/cmd/holdfast TestRunPage", ""},
}

func (e elsewhere) has(b shellBlock) bool {
	return e.page == b.page && strings.HasPrefix(b.text, e.begins)
}

// What is not run here is a block, and the test that runs it is there, or it is said why it cannot be run.
func TestEveryShellBlockIsRun(t *testing.T) {
	blocks := shellBlocks(t)
	for _, e := range others {
		require.True(t, slices.ContainsFunc(blocks, e.has), "no such block: %+v", e)
		where, name, named := strings.Cut(e.test, " ")
		require.True(t, named != (e.not != ""), "%+v", e)
		if named {
			files, err := filepath.Glob(filepath.Join(root, where, "*_test.go"))
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(files, func(file string) bool {
				source, err := os.ReadFile(file)
				return err == nil && bytes.Contains(source, []byte("\nfunc "+name+"(t *testing.T) {"))
			}), "no such test: %s", e.test)
		}
	}
}

// shell runs lines with the server, and what readers have, in place of redis-1 and the others.
type shell struct {
	t       *testing.T
	dir     string
	env     []string
	replace *strings.Replacer
	heard   map[string]string // the files of what subscriptions print, by line
}

// newShell writes a redis-cli that leaves the page's host out.
func newShell(t *testing.T, redisCLI string, one, several *server.Deployment) *shell {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	addr := one.Addrs()[0]
	host, port, found := strings.Cut(addr, ":")
	require.True(t, found)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "redis-cli"), []byte(fmt.Sprintf(`#!/bin/sh
n=$#
while [ $n -gt 0 ]; do
  a=$1; shift; n=$((n-1))
  case "$a" in
  -h) shift; n=$((n-1)); continue ;;
  redis-1:6379) a=%s ;;
  esac
  set -- "$@" "$a"
done
exec %s -h %s -p %s "$@"
`, addr, redisCLI, host, port)), 0o700))
	require.NoError(t, os.Symlink(holdfast(t), filepath.Join(bin, "holdfast")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "functions"), 0o700))
	for _, library := range []string{"holdfast.lua", "fenced.lua"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "functions", library), []byte(page(t, "functions", library)), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "report.sh"), []byte("#!/bin/sh\necho reported\n"), 0o700))
	var abc []string
	for _, node := range several.Nodes() {
		abc = append(abc, node.Addr)
	}
	return &shell{t: t, dir: dir, heard: map[string]string{},
		env: append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOLDFAST_ADDR="+addr),
		replace: strings.NewReplacer("a:6379,b:6379,c:6379", strings.Join(abc, ","), "--addr b:6379", "--addr "+abc[1],
			"--addr 127.0.0.1:6379", "--addr "+addr)}
}

// wrong are the words of a server, or of a command, that does not know what was typed.
var wrong = regexp.MustCompile(`(?i)unknown (sub)?command|wrong number of arg|syntax error|unrecognized option|unknown flag|not found`)

// run runs a line of a page. What it prints is compared with the comment behind it, if that begins
// with a reply.
func (s *shell) run(b shellBlock, line string) {
	s.t.Helper()
	line = strings.TrimPrefix(line, "$ ")
	for _, word := range []string{"FCALL ", "GET "} {
		if strings.HasPrefix(line, word) {
			line = "redis-cli " + line
		}
	}
	where := fmt.Sprintf("%s:%d: %s", b.page, b.line, line)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch {
	case strings.HasPrefix(line, "make "):
		line = "make -n " + strings.TrimPrefix(line, "make ") // that there is such a target
	case strings.HasPrefix(line, "redis-cli SSUBSCRIBE"):
		s.subscribe(line)
		return
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", s.replace.Replace(line))
	cmd.Dir, cmd.Env = s.dir, s.env
	if strings.HasPrefix(line, "make ") || strings.HasPrefix(line, "go ") {
		cmd.Dir = root
	}
	out, err := cmd.CombinedOutput()
	require.NoError(s.t, ctx.Err(), where)
	code := cmd.ProcessState.ExitCode()
	switch {
	case strings.HasPrefix(line, "holdfast "):
		// 2 and 64 are wrong usage; what asks a person is not
		asks := bytes.Contains(out, []byte("nobody can be asked without a terminal"))
		require.True(s.t, asks || code != 2 && code != 64, "%s: %d: %s", where, code, out)
	case !strings.HasPrefix(line, "redis-cli "):
		require.NoError(s.t, err, "%s: %s", where, out)
	}
	require.NotRegexp(s.t, wrong, string(out), where)
	if want := wanted(line); want != nil {
		require.Regexp(s.t, want, strings.Join(strings.Fields(string(out)), " "), where)
	}
}

// wanted is the reply that the comment of a line begins with; nil if it does not.
func wanted(line string) *regexp.Regexp {
	_, comment, found := strings.Cut(line, " # ")
	if !found || !regexp.MustCompile(`^(\d+( |:|$)|token:)`).MatchString(comment) {
		return nil
	}
	comment, _, _ = strings.Cut(comment, ":")
	comment, _, _ = strings.Cut(comment, ";")
	comment, _, _ = strings.Cut(comment, ",")
	var form []string
	for _, word := range strings.Fields(comment) {
		switch word {
		case "fence", "token", "pttl":
			form = append(form, `\d+`)
		case "...":
			form = append(form, `.*`)
		case "''":
		default:
			form = append(form, regexp.QuoteMeta(word))
		}
	}
	return regexp.MustCompile("^" + strings.Join(form, " ") + "$")
}

// subscribe leaves a subscription open until the test ends.
func (s *shell) subscribe(line string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out := filepath.Join(s.t.TempDir(), "heard")
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+line[:strings.Index(line, " #")]+" > "+out)
	cmd.Dir, cmd.Env = s.dir, s.env
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	s.heard[line] = out
	s.hears(line, "ssubscribe")
}

func (s *shell) hears(line, word string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		text, err := os.ReadFile(s.heard[line])
		return err == nil && regexp.MustCompile(`(?m)^"?`+word).Match(text)
	}, 20*time.Second, 20*time.Millisecond, "%s: %s", line, word)
}

// The blocks that no other test runs are run on a real server, line by line. A line must be one that
// the server and the commands know, and its reply what the comment says, if that says one.
func TestTheShellBlocksRun(t *testing.T) {
	redisCLI, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("not run: this machine has no redis-cli, which the blocks of the pages call")
	}
	ctx := context.Background()
	one, several := server.Single(t, server.Owned()), server.Several(t, 3)
	several.Load(t)
	node := one.Nodes()[0]
	do := func(command ...string) {
		_, err := node.Do(ctx, command...)
		require.NoError(t, err)
	}
	_, err = exec.LookPath("make")
	makes := err == nil
	for _, b := range shellBlocks(t) {
		if slices.ContainsFunc(others, func(e elsewhere) bool { return e.has(b) }) {
			continue
		}
		if strings.HasPrefix(b.text, "make ") && !makes {
			t.Logf("%s:%d is not run: this machine has no make", b.page, b.line)
			continue
		}
		t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) {
			s := newShell(t, redisCLI, one, several)
			one.Load(t)
			do("FUNCTION", "LOAD", "REPLACE", page(t, "functions", "fenced.lua"))
			do("FLUSHALL")
			do("SET", "{stock:7}", "12")
			switch { // a lock that is held and waited for, and one that is held
			case b.page == "docs/operating.md":
				do("FCALL", "holdfast_acquire", "1", "lock:order:42", "web-42", "600000")
				do("FCALL", "holdfast_wait", "1", "lock:order:42", "web-7", "30000")
			case strings.HasPrefix(b.text, "FCALL holdfast_break"):
				do("FCALL", "holdfast_acquire", "1", "lock:order:42", "worker-8", "30000")
			}
			for _, line := range strings.Split(b.text, "\n") {
				if strings.TrimSpace(line) != "" {
					s.run(b, line)
				}
			}
			for line := range s.heard {
				s.hears(line, "smessage")
			}
		})
	}
}
