// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var versionLine = regexp.MustCompile(`(?m)^local VERSION = '([^']*)'`)

// versionOf reads the version out of a library's source: "" if there is none that is a semantic
// version. Reading it from the source, and not by holdfast_version, works on replicas and needs no
// permission to call functions.
func versionOf(source string) string {
	found := versionLine.FindStringSubmatch(source)
	if found == nil {
		return ""
	}
	if _, ok := parseVersion(found[1]); !ok {
		return ""
	}
	return found[1]
}

// version is a semantic version, https://semver.org, without its build metadata, which does not
// count for the order.
type version struct {
	numbers    [3]uint64
	preRelease []string
}

func parseVersion(text string) (version, bool) {
	var v version
	text, _, _ = strings.Cut(text, "+")
	core, pre, hasPre := strings.Cut(text, "-")
	parts := strings.Split(core, ".")
	if len(parts) != len(v.numbers) || hasPre && pre == "" {
		return version{}, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return version{}, false
		}
		v.numbers[i] = n
	}
	if hasPre {
		v.preRelease = strings.Split(pre, ".")
	}
	return v, true
}

// major is the first number of a version: that of the contract between a library and its callers.
func major(text string) uint64 {
	v, _ := parseVersion(text)
	return v.numbers[0]
}

// compareVersions orders two versions as semver.org's section 11 does: -1, 0, 1. What is not a
// version counts as the lowest.
func compareVersions(a, b string) int {
	va, _ := parseVersion(a)
	vb, _ := parseVersion(b)
	if c := slices.Compare(va.numbers[:], vb.numbers[:]); c != 0 {
		return c
	}
	if len(va.preRelease) == 0 || len(vb.preRelease) == 0 {
		return cmp.Compare(len(vb.preRelease), len(va.preRelease)) // a release is higher than its pre-releases
	}
	return slices.CompareFunc(va.preRelease, vb.preRelease, compareIdentifiers)
}

// compareIdentifiers: numbers by value, texts by bytes, numbers below texts.
func compareIdentifiers(a, b string) int {
	na, errA := strconv.ParseUint(a, 10, 64)
	nb, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(na, nb)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}
