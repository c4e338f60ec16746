package polyglot

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// of returns a language, or skips the test.
func of(t *testing.T, name string) worker {
	t.Helper()
	for _, w := range workers(t) {
		if w.name == name {
			return w
		}
	}
	t.Skipf("no %s here", name)
	return worker{}
}

// script runs a few lines of one of the languages, with HOST and PORT of the server behind them.
func script(t *testing.T, language, text string) string {
	t.Helper()
	option := map[string]string{"python": "-c", "ruby": "-e"}[language]
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, of(t, language).argv[0], option, text, bed.host, bed.port)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// A child of fork that ends inside the block leaves its parent's lock alone.
func TestAChildGivesNothingBack(t *testing.T) {
	t.Parallel()
	for language, text := range map[string]string{
		"python": `
import os, sys
sys.path.insert(0, "python")
import redis, holdfast
with holdfast.lock(redis.Redis(sys.argv[1], int(sys.argv[2]), retry=None), "forked-python") as lock:
    if os.fork() == 0:
        sys.exit()
    os.wait()
    print(lock._redis.execute_command("FCALL", "holdfast_inspect", 1, lock.key)[0])
`,
		"ruby": `
require "./ruby/holdfast"
Holdfast.lock(Redis.new(host: ARGV[0], port: ARGV[1].to_i), "forked-ruby") do |lock|
  exit unless fork
  Process.wait
  puts Redis.new(host: ARGV[0], port: ARGV[1].to_i).call("FCALL", "holdfast_inspect", 1, lock.key)[0]
end
`,
	} {
		t.Run(language, func(t *testing.T) { require.Equal(t, "1\n", script(t, language, text)) })
	}
}

// A wait that is thrown out of leaves the line, and says what it was thrown out by.
func TestAWaitIsTimedOutInRuby(t *testing.T) {
	t.Parallel()
	l := acquire(t, "late")
	require.Equal(t, "Timeout::Error\n", script(t, "ruby", `
require "./ruby/holdfast"
require "timeout"
begin
  Timeout.timeout(0.7) { Holdfast.lock(Redis.new(host: ARGV[0], port: ARGV[1].to_i), "late") { } }
rescue Timeout::Error, Holdfast::Lost => e
  puts e.class
end
`))
	waits(t, "late", 0)
	release(t, l)
}

// shell returns a command under a lock, held by holdfast.sh.
func shell(ctx context.Context, lease, lock string, command ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", append([]string{"shell/holdfast.sh", "-l", lease, lock}, command...)...)
	cmd.Env = append(os.Environ(), "REDIS_CLI=redis-cli -h "+bed.host+" -p "+bed.port)
	cmd.WaitDelay = time.Second
	return cmd
}

// A command can end before the process that renews its lock has begun to hear signals. It is not waited
// for, and renews nothing.
func TestACommandOfTheShellEndsAtOnce(t *testing.T) {
	t.Parallel()
	of(t, "sh")
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 25 {
				said, err := shell(ctx, "600000", "at once "+strconv.Itoa(i), "true").CombinedOutput()
				if !assert.NoError(t, err, "%s", said) {
					return
				}
			}
		})
	}
	all.Wait()
}

// A holdfast.sh that is killed leaves its command running. The lock is renewed for as long as that,
// and no longer.
func TestTheShellIsKilled(t *testing.T) {
	t.Parallel()
	of(t, "sh")
	input, stdin, err := os.Pipe()
	require.NoError(t, err)
	cmd := shell(t.Context(), "3000", "killed", "sh", "-c", "echo held; read -r line || :")
	cmd.Stdin = input
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, input.Close())
	_, err = stdout.Read(make([]byte, 5))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	renewed(t, "killed")
	require.NoError(t, stdin.Close()) // the command ends, and nothing renews the lock
	release(t, acquire(t, "killed"))
}
