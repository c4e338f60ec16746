package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a program that imports the client has to trust, besides us: few modules, and no container engine.
func TestAConsumersGoSumIsShort(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module consumer\n\ngo 1.25.0\n\nrequire github.com/holdfast-go/holdfast v0.0.0\n\n" +
			"replace github.com/holdfast-go/holdfast => " + root + "\n",
		"main.go": "package main\n\nimport _ \"github.com/holdfast-go/holdfast/client\"\n\nfunc main() {}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cmd := exec.Command("go", "mod", "tidy")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	require.NoError(t, err)
	require.NotContains(t, string(sums), "docker")
	require.LessOrEqual(t, strings.Count(string(sums), "\n"), 20, string(sums))
}
