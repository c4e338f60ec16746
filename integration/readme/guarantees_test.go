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
