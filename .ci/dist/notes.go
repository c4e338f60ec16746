// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// notes are the part of CHANGELOG.md about this version, and how to check what was downloaded. What
// comes before a release (v1.2.3-rc.1) has the part about what is not released.
func (r release) notes() (string, error) {
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return "", err
	}
	about := strings.TrimPrefix(r.version, "v")
	if strings.Contains(about, "-") {
		about = "Unreleased"
	}
	part, ok := section(string(text), about)
	if !ok {
		return "", fmt.Errorf("CHANGELOG.md has no section [%s]", about)
	}
	if !functionsLine.MatchString(part) {
		return "", fmt.Errorf("CHANGELOG.md, section [%s]: it must say whether the functions changed, as **Functions: changed**", about)
	}
	return part + fmt.Sprintf("\n## Check what you download\n\n    sha256sum --check --ignore-missing SHA256SUMS\n"+
		"    gh attestation verify FILE --repo %s\n", strings.TrimPrefix(repository, "https://github.com/")), nil
}

var functionsLine = regexp.MustCompile(`\*\*Functions: (un)?changed\*\*`)

// section is what stands under a heading of the changelog, without the heading.
func section(changelog, about string) (string, bool) {
	heading := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(about) + `\].*\n`)
	at := heading.FindStringIndex(changelog)
	if at == nil {
		return "", false
	}
	part, _, _ := strings.Cut(changelog[at[1]:], "\n## ")
	return strings.TrimSpace(part) + "\n", true
}
