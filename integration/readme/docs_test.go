// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
