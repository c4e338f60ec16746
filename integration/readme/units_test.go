// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

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
