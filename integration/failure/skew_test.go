package failure

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// skewVariable is by how many seconds the wall clock of a skewed program is off.
const skewVariable = "HOLDFAST_SKEW"

// skew is by how much this process's wall clock is off.
func skew() time.Duration {
	seconds, _ := strconv.Atoi(os.Getenv(skewVariable))
	return time.Duration(seconds) * time.Second
}

// skewed is a program whose wall clock is off. The zero skewed is this one, with the machine's clock.
type skewed struct {
	program string
	by      time.Duration
}

func (s skewed) wear(cmd *exec.Cmd) {
	if s.program != "" {
		cmd.Path = s.program
		cmd.Env = append(cmd.Env, skewVariable+"="+strconv.Itoa(int(s.by/time.Second)))
	}
}

// now is where the standard library reads the clock.
const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"

// off is a file of package time, which may import syscall and not os.
const off = `package time

import "syscall"

var holdfastSkew = func() int64 {
	text, _ := syscall.Getenv("` + skewVariable + `")
	seconds, _ := atoi(text)
	return int64(seconds)
}()
`

// buildSkewed builds this test program with a standard library that adds the skew to the wall clock.
// What shifts the clock of other programs, a library that is loaded before them, does not reach Go,
// which asks the kernel itself.
func buildSkewed(t *testing.T) (program string) {
	t.Helper()
	dir := t.TempDir()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(original)
	require.NoError(t, err)
	require.Contains(t, string(text), now, "this Go reads the clock in another way")
	changed := strings.Replace(string(text), now, now+"\tsec += holdfastSkew\n", 1)
	overlay := map[string]map[string]string{"Replace": {}}
	for name, source := range map[string]string{"time.go": changed, "holdfast.go": off} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
		overlay["Replace"][filepath.Join(filepath.Dir(original), name)] = file
	}
	list, err := json.Marshal(overlay)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600))
	program = filepath.Join(dir, "skewed.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}
