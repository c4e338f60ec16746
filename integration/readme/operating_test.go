// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func page(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	require.NoError(t, err)
	return string(b)
}

// source is the Go source of some directories without tests, with the texts put together that are written in
// pieces.
func source(t *testing.T, dirs ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range dirs {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		}))
	}
	return regexp.MustCompile(`" \+\s*"`).ReplaceAllString(all.String(), "")
}

// firstCells are what stands in backquotes in the first cells of the tables whose first column has
// this title.
func firstCells(t *testing.T, text, title string) []string {
	t.Helper()
	var cells []string
	for _, part := range strings.Split(text, "\n| "+title+" |")[1:] {
		table, _, _ := strings.Cut(part, "\n\n")
		for _, row := range strings.Split(table, "\n")[2:] {
			first, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(first, -1) {
				cells = append(cells, quoted[1])
			}
		}
	}
	require.NotEmpty(t, cells, title)
	return cells
}

// What the page for those who are called at night quotes is what they see, and what they can see
// is on the page.
func TestTheSymptomsAreWhatIsSeen(t *testing.T) {
	text := page(t, "docs", "operating.md")
	texts := source(t, "client", "loader", "functions")

	// the log: what is quoted begins a line, and each line is there
	lines := firstCells(t, text, "the log says")
	for _, line := range lines {
		require.True(t, strings.Contains(texts, `"`+line), line)
	}
	written := regexp.MustCompile(`"(holdfast: [^"%]*;[^"%]*)"`).FindAllStringSubmatch(texts, -1)
	require.GreaterOrEqual(t, len(written), 9)
	for _, s := range written {
		require.True(t, slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(s[1], line) }), s[1])
	}

	// errors
	errors := section(t, page(t, "functions", "README.md"), "Errors")
	quoted := firstCells(t, text, "the error says")
	for _, words := range quoted {
		require.True(t, strings.Contains(texts, `"`+words+`"`), words)
	}
	_, _, errs := exported(t)
	for _, name := range regexp.MustCompile("`(Err\\w+)`").FindAllStringSubmatch(text, -1) {
		require.Contains(t, errs, name[1])
	}
	for _, code := range firstCells(t, errors, "Code") {
		require.Contains(t, quoted, code)
	}

	// the server's own
	_, own, found := strings.Cut(errors, "Errors of the server itself")
	require.True(t, found)
	own, _, _ = strings.Cut(own, ". A closed")
	words := firstCells(t, text, "the server says")
	for _, word := range words {
		require.Contains(t, own, "`"+word+"`")
	}
	for _, word := range regexp.MustCompile("`([A-Z]+)`").FindAllStringSubmatch(own, -1) {
		require.True(t, slices.Contains(words, word[1]) || slices.Contains(quoted, word[1]), word[1])
	}

	// causes of a lost lock: all of them
	causes := firstCells(t, text, "`cause`")
	for _, cause := range causes {
		require.True(t, strings.Contains(texts, `"`+cause+`"`), cause)
	}
	lost := regexp.MustCompile(`NewKind\("([^"]+)", ErrLost\)`).FindAllStringSubmatch(page(t, "client", "internal", "holding", "errors.go"), -1)
	require.Len(t, causes, len(lost))
	for _, cause := range lost {
		require.Contains(t, causes, cause[1])
	}

	// alerts: all of them
	alerts := firstCells(t, text, "the alert")
	rules := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(page(t, "docs", "observing.md")+page(t, "docs", "exporter.md"), -1)
	require.Len(t, alerts, len(rules))
	for _, rule := range rules {
		require.Contains(t, alerts, rule[1])
	}

	// panels: all of them
	var panels []string
	for _, dashboard := range []string{page(t, "client", "adapter", "prometheus", "grafana.json"), page(t, "docs", "exporter.json")} {
		for _, panel := range regexp.MustCompile(`"title": "(.*)",\n *"description"`).FindAllStringSubmatch(dashboard, -1) {
			panels = append(panels, panel[1])
		}
	}
	require.ElementsMatch(t, panels, firstCells(t, text, "the panel moves"))
}

// command is the command holdfast, a module of its own, and where it was built.
var command = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "holdfast-readme-"); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "holdfast"), ".")
	build.Dir = filepath.Join(root, "loader", "cmd", "holdfast")
	out, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	built = dir
	return dir, err
})

var built string

func holdfast(t *testing.T) string {
	t.Helper()
	dir, err := command()
	require.NoError(t, err)
	return filepath.Join(dir, "holdfast")
}

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// use is a command line of holdfast in a page: in backquotes, or in a block.
var use = regexp.MustCompile("(?m)(?:`|^ *(?:\\$ )?)holdfast ([a-z]+\\b[^`\n]*)")

// Each sub-command and each flag that a page names is one.
func TestTheCommandsExist(t *testing.T) {
	help := map[string]string{}
	helpOf := func(sub string) string {
		if _, asked := help[sub]; !asked {
			out, err := exec.Command(holdfast(t), "help", sub).Output()
			if err != nil {
				out = nil
			}
			help[sub] = string(out)
		}
		return help[sub]
	}
	for _, path := range pages(t) {
		text := page(t, path)
		for _, line := range use.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(line[1])
			sub := words[0]
			if sub == "help" && len(words) > 1 {
				sub = words[1]
			}
			if sub == "help" || sub == "COMMAND" {
				continue
			}
			said := helpOf(sub)
			require.NotEmpty(t, said, "%s: holdfast %s", path, line[1])
			for _, word := range words[1:] {
				if word == "--" || word == "#" || strings.HasPrefix(word, "'") || strings.HasPrefix(word, `"`) {
					break // of another command, a comment, a text
				}
				if flag, ok := strings.CutPrefix(word, "--"); ok {
					flag = strings.TrimRight(flag, ",.;:")
					known := regexp.MustCompile(`--` + regexp.QuoteMeta(strings.TrimSuffix(flag, "...")) + `\b`).MatchString(said)
					require.True(t, known, "%s: holdfast %s", path, line[1])
				}
			}
		}
		// codes of the doctor, in what stands behind its command
		for _, hint := range regexp.MustCompile(`(?m)^holdfast doctor[^#\n]*# ([a-z]+-[a-z-]+(?:, [a-z]+-[a-z-]+)*)$`).FindAllStringSubmatch(text, -1) {
			for _, code := range strings.Split(hint[1], ", ") {
				require.True(t, strings.Contains(page(t, "docs", "doctor.md"), "| `"+code+"` |"), "%s: %s", path, code)
			}
		}
	}
	require.Greater(t, len(help), 8)
}

// pages are those for users.
func pages(t *testing.T) []string {
	t.Helper()
	found := []string{"README.md", "CHANGELOG.md", "SECURITY.md"}
	for _, pattern := range []string{"docs/*.md", "functions/*.md"} {
		some, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range some {
			found = append(found, strings.TrimPrefix(filepath.ToSlash(path), root+"/"))
		}
	}
	require.Greater(t, len(found), 12)
	return found
}

var (
	fenced = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	inline = regexp.MustCompile("`[^`\n]*`")
)

// anchorsOf are the places in a page that a link can lead to, as GitHub names them.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		plain := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		anchors[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return anchors
}

// Every relative link of every page leads to a file, and its anchor to a heading there.
func TestTheLinksOfAllPagesLeadSomewhere(t *testing.T) {
	for _, path := range pages(t) {
		text := inline.ReplaceAllString(fenced.ReplaceAllString(page(t, path), ""), "code")
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(link[1], "#")
			to := path
			if file != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(path), file))
			}
			info, err := os.Stat(filepath.Join(root, to))
			require.NoError(t, err, "%s: %s", path, link[1])
			if anchor != "" {
				require.False(t, info.IsDir(), "%s: %s", path, link[1])
				require.True(t, anchorsOf(page(t, to))[anchor], "%s: %s", path, link[1])
			}
		}
	}
}
