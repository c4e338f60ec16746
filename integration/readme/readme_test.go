// Package readme holds README.md to the code: its program runs, its tables are complete, its links
// lead somewhere.
package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// The program of the README, copied to a file of its own, compiles and does what it says.
func TestTheProgramRuns(t *testing.T) {
	d := server.Single(t)
	d.Load(t)
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```go\n(.*?)```").FindStringSubmatch(string(text))
	require.Len(t, block, 2, "a go block")
	source := strings.ReplaceAll(block[1], "127.0.0.1:6379", d.Addrs()[0])
	require.NotEqual(t, block[1], source, "the program names a server")

	// inside the module, so that its imports are this code
	dir, err := os.MkdirTemp(".", "program-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
	out, err := exec.Command("go", "run", "./"+dir).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, "shipping order 42, alone\ntoken grows: true\nsomeone else has it for 30s\n", string(out))
}
