// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"os"
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
