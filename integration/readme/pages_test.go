// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// section is what stands below a heading of a page, until the next one.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, after, found := strings.Cut(page, "\n## "+heading+"\n")
	require.True(t, found, heading)
	body, _, _ := strings.Cut(after, "\n## ")
	return body
}

// exported is what the package client declares: its options, the fields of Config, its errors.
func exported(t *testing.T) (options, fields, errs []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "client", "*.go"))
	require.NoError(t, err)
	var text strings.Builder
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		text.Write(source)
	}
	firsts := func(pattern, text string) (list []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			list = append(list, m[1])
		}
		return list
	}
	_, config, found := strings.Cut(text.String(), "\ntype Config struct {\n")
	require.True(t, found)
	config, _, _ = strings.Cut(config, "\n}\n")
	return firsts(`(?m)^func (With\w+)\(`, text.String()), firsts(`(?m)^\t([A-Z]\w*) `, config), firsts(`(?m)^(?:\t|var )(Err[A-Z]\w+) += `, text.String())
}

// What the client offers stands in the tables, and what stands there is offered.
func TestTheTablesAreComplete(t *testing.T) {
	options, fields, errs := exported(t)
	require.NotEmpty(t, options)
	require.NotEmpty(t, fields)
	require.NotEmpty(t, errs)

	text := page(t, "docs", "client.md")
	settings := section(t, text, "Settings")
	for _, name := range append(options, fields...) {
		require.Regexp(t, "`"+name+`[`+"`"+`(]`, settings)
	}
	for _, name := range regexp.MustCompile(`\bWith(?:out)?[A-Z]\w+`).FindAllString(text, -1) {
		require.Contains(t, options, name)
	}

	for _, name := range errs {
		require.Contains(t, text, "`"+name+"`")
	}
	for _, name := range regexp.MustCompile(`\bErr[A-Z]\w+`).FindAllString(text, -1) {
		require.Contains(t, errs, name)
	}
}

// Every row of the guarantees names tests that exist, or the simulation.
func TestTheGuaranteesAreShown(t *testing.T) {
	text := page(t, "docs", "guarantees.md")
	var tests strings.Builder
	for _, pattern := range []string{"integration/*/*_test.go", "client/*_test.go", "client/quorum/*_test.go", "client/internal/*/*_test.go",
		"loader/*_test.go", "loader/cmd/holdfast/*_test.go", "client/locktest/internal/*/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			tests.Write(source)
		}
	}
	for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(text, -1) {
		require.Contains(t, tests.String(), "\nfunc "+name[1]+"(t *testing.T) {", "no such test")
	}
	for _, heading := range []string{"Clients and messages", "Servers", "A quorum"} {
		part := section(t, text, heading)
		table, _, _ := strings.Cut(part[strings.Index(part, "| ---"):], "\n\n")
		rows := strings.Split(strings.TrimSpace(table), "\n")[1:]
		require.NotEmpty(t, rows)
		for _, row := range rows {
			require.Regexp(t, "`Test\\w+`|simulated", row)
		}
	}
}

// goBlock is a block of Go in a page.
var goBlock = regexp.MustCompile("(?s)\n```go\n(.*?)\n```")

// Every block of Go in docs stands in code that is compiled or run by a test, word for word.
func TestTheCodeOfDocsIsRun(t *testing.T) {
	var code strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.WriteString(flush(string(text)))
		return err
	}))
	blocks := 0
	for _, path := range pages(t) {
		if !strings.HasPrefix(path, "docs/") {
			continue
		}
		for _, block := range goBlock.FindAllStringSubmatch(page(t, path), -1) {
			blocks++
			if !strings.Contains(code.String(), flush(block[1])) {
				t.Errorf("%s has code that no test runs:\n%s", path, block[1])
			}
		}
	}
	require.NotZero(t, blocks)
}

// flush takes the indentation away.
func flush(text string) string { return regexp.MustCompile(`(?m)^[ \t]+`).ReplaceAllString(text, "") }

// The numbers of the page that says how it works are those of the source.
func TestTheNumbersAreThoseOfTheSource(t *testing.T) {
	text := strings.Join(strings.Fields(page(t, "docs", "how-it-works.md")), " ")
	for _, c := range []struct{ says, file, source string }{
		{"writes the first waiter in as the owner, for 2 s at most", "functions/holdfast.lua", "local PROVISIONAL_MS = 2000 "},
		{"5,000 waiters", "functions/holdfast.lua", "local MAX_WAITERS = 5000\n"},
		{"at most 100 of them are passed over in one call", "functions/holdfast.lua", "local STEPS = 100 "},
		{"A hundredth of the lease and 2 ms more", "client/internal/lease/timing.go", "return length/100 + 2*time.Millisecond"},
		{"After 2 ms, or 1,000 passes, the lock goes back", "client/internal/queue/timing.go", "passRun   = 1000\n"},
		{"After 2 ms, or 1,000 passes, the lock goes back", "client/internal/queue/timing.go", "passSlice = 2 * time.Millisecond"},
		{"again for half a minute", "client/internal/keeper/timing.go", "{time.Second, 2 * time.Second, 7 * time.Second, 20 * time.Second}"},
		{"a third of the lease after the last renewal", "client/config.go", "Default a third of the lease"},
		{"no news is believed for longer than a second", "client/internal/tracking/tracking.go", "maxSilence = time.Second"},
		{"asks again after about a second", "client/internal/queue/timing.go", "lookPause = time.Second\n"},
		{"3 to 9 servers", "client/quorum/open.go", "servers < 3 || servers > 9 ||"},
	} {
		require.Contains(t, text, c.says)
		require.True(t, strings.Contains(page(t, c.file), c.source), "%s: %s", c.file, c.source)
	}
}

// The units for systemd are such: systemd itself reads them.
func TestUnitsForSystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze on this machine")
	}
	text := page(t, "docs", "deploying.md")
	blocks := regexp.MustCompile("(?s)```ini\n(.*?)```").FindAllStringSubmatch(text, -1)
	names := []string{"holdfast-load.service", "holdfast-nightly.service", "holdfast-nightly.timer"}
	require.Len(t, blocks, len(names))
	dir := t.TempDir()
	programs := regexp.MustCompile(`/usr/local/bin/\w+`)
	check := func(name, unit string) (string, error) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(programs.ReplaceAllString(unit, "/bin/true")), 0o600))
		said, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
		return string(said), err
	}
	for i, name := range names {
		require.Contains(t, text, name)
		said, err := check(name, blocks[i][1])
		require.NoError(t, err, "%s: %s", name, said)
		require.NotContains(t, said, name, "a complaint")
	}
	said, _ := check("wrong.service", "[Service]\nExecStart=/bin/true\nNoSuchSetting=1\n")
	require.Contains(t, said, "wrong.service", "what is wrong would be found")
}
