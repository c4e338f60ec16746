// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
)

func TestVersionOfTheSource(t *testing.T) {
	require.Equal(t, functions.Version, versionOf(functions.Source))
	require.Equal(t, "1.2.3-rc.1", versionOf("#!lua name=holdfast\nlocal VERSION = '1.2.3-rc.1' -- soon\n"))
	for _, source := range []string{"", "local VERSION = 'one'", "-- local VERSION = '1.0.0'", "local VERSION = '1.0'", "local VERSION = '1.0.0-'"} {
		require.Empty(t, versionOf(source), source)
	}
}

func TestVersionsAreOrdered(t *testing.T) {
	ordered := []string{"0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
		"1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0", "10.0.0"}
	for i, a := range ordered {
		for j, b := range ordered {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			require.Equal(t, want, compareVersions(a, b), "%s and %s", a, b)
		}
	}
	require.Zero(t, compareVersions("1.0.0+build.1", "1.0.0+build.2"))
}
