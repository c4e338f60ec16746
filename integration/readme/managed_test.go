package readme

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is said of a managed service has the address where its vendor says it, or says that there is
// none.
func TestWhatIsSaidOfServicesHasAnAddress(t *testing.T) {
	text := page(t, "docs", "managed.md")
	require.Contains(t, text, "**None of these was tried.**")
	overview := section(t, text, "Overview")
	_, services, _ := strings.Cut(text, "\n## Overview\n")
	services, _, found := strings.Cut(services, "\n## What to choose there\n")
	require.True(t, found)
	sections := strings.Split(services, "\n## ")[1:]
	require.Greater(t, len(sections), 12)
	for _, section := range sections {
		name, body, _ := strings.Cut(section, "\n")
		require.True(t, leadsTo(overview, name), "%s is not in the overview", name)
		for _, item := range strings.Split(body, "\n- ")[1:] {
			plain := strings.Join(strings.Fields(item), " ")
			require.Regexp(t, `<https://[^> ]+>|nothing found|not documented|no place for a lock`, plain, name)
		}
	}
}

// leadsTo reports whether there is a link to a heading.
func leadsTo(overview, heading string) bool {
	for anchor := range anchorsOf("## " + heading) {
		return strings.Contains(overview, "(#"+anchor+")")
	}
	return false
}
