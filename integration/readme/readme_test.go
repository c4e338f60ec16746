// SPDX-License-Identifier: Apache-2.0

// Package readme holds README.md to the code: its program runs, its tables are complete, its links
// lead somewhere.
package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// The program of the README, copied to a module of its own as the README says, compiles and does what
// it says.
func TestTheProgramRuns(t *testing.T) {
	d := server.Single(t)
	d.Load(t)
	blocks := goBlock.FindAllStringSubmatch(page(t, "README.md"), -1)
	require.NotEmpty(t, blocks, "a go block")
	source := strings.ReplaceAll(blocks[0][1], "127.0.0.1:6379", d.Addrs()[0])
	require.NotEqual(t, blocks[0][1], source, "the program names a server")
	clone, err := filepath.Abs(root)
	require.NoError(t, err)
	dir := t.TempDir()
	in := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOSUMDB=off") // go.sum of this module has checked them
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %s: %s", name, args, out)
		return string(out)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
	in("go", "mod", "init", "example.com/shop")
	lines := regexp.MustCompile(`(?m)^    (go mod [^#]*?)(?: +#.*)?$`).FindAllStringSubmatch(page(t, "README.md"), -1)
	require.Len(t, lines, 2, "how to get the client")
	for _, line := range lines {
		words := strings.Fields(strings.ReplaceAll(line[1], "=../holdfast", "="+clone))
		in(words[0], words[1:]...)
	}
	require.Equal(t, "shipping order 42, alone\ntoken grows: true\nrefused: true\n", in("go", "run", "."))
	// What such a program has to trust, besides us: few modules, and no container engine.
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	require.NoError(t, err)
	require.NotContains(t, string(sums), "docker")
	require.LessOrEqual(t, strings.Count(string(sums), "\n"), 20, string(sums))
}

// The trial in the README: each command of the two terminals is run, and prints what stands there, but for numbers.
func TestTheTrialRuns(t *testing.T) {
	redisCLI, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("not run: this machine has no redis-cli, which the trial calls")
	}
	host, port, _ := strings.Cut(server.Single(t, server.Owned()).Addrs()[0], ":")
	_, trial, found := strings.Cut(page(t, "README.md"), "\n```console\n")
	require.True(t, found)
	trial, _, _ = strings.Cut(trial, "\n```")
	steps := regexp.MustCompile(`(?m)^[AB]\$ redis-cli `).Split(trial, -1)[1:]
	require.Len(t, steps, 4)
	plain := func(s string) string { return regexp.MustCompile(`\d{4,}`).ReplaceAllString(strings.TrimSpace(s), "N") }
	for _, step := range steps {
		line, prints, _ := strings.Cut(step, "\n")
		cmd := exec.Command("sh", "-c", "exec "+redisCLI+" --no-raw -h "+host+" -p "+port+" "+line)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, line)
		require.Equal(t, plain(prints), plain(string(out)), line)
	}
}
