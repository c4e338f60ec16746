// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/doctor"
)

// The page has a row for each kind, in the words of the table, and no other.
func TestThePageIsTheTable(t *testing.T) {
	page, err := os.ReadFile("../../../../../docs/doctor.md")
	require.NoError(t, err)
	for _, k := range doctor.Kinds {
		row := regexp.QuoteMeta(fmt.Sprintf("| `%s` | %s | %s |", k.Code, k.Severity, k.Why))
		require.Regexp(t, "(?m)^"+row+" .{4,} \\|$", string(page))
	}
	rows := regexp.MustCompile("(?m)^\\| `[a-z-]+` \\| (danger|slow|note) \\|")
	require.Len(t, rows.FindAllString(string(page), -1), len(doctor.Kinds))
}

// What the source finds is in the table, and what is in the table the source finds.
func TestEveryKindCanBeFound(t *testing.T) {
	var source strings.Builder
	for _, pattern := range []string{"*.go", "../../../../internal/risk/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			if name == "kinds.go" || strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			source.Write(text)
		}
	}
	codes := map[string]bool{}
	for _, k := range doctor.Kinds {
		require.False(t, codes[k.Code], "%s is there twice", k.Code)
		codes[k.Code] = true
		require.Contains(t, source.String(), `"`+k.Code+`"`, "nothing finds it")
	}
	used := regexp.MustCompile(`(?:find|note|name)\("([a-z-]+)"|Code = "([a-z-]+)"`).FindAllStringSubmatch(source.String(), -1)
	require.Greater(t, len(used), 30)
	for _, u := range used {
		require.True(t, codes[u[1]+u[2]], "%s is not in the table", u[1]+u[2])
	}
}
