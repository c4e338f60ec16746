// SPDX-License-Identifier: Apache-2.0

package polyglot

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/server"
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

// A wait that is thrown out of leaves the line, and says what it was thrown out by.
func TestAWaitIsTimedOut(t *testing.T) {
	t.Parallel()
	for language, text := range map[string][2]string{
		"ruby": {"-e", `
require "./ruby/holdfast"
require "timeout"
begin
  Timeout.timeout(0.7) { Holdfast.lock(Redis.new(host: ARGV[0], port: ARGV[1].to_i), ARGV[2]) { } }
rescue Timeout::Error, Holdfast::Lost => e
  puts e.class
end
`},
		"asyncio": {"-c", `
import asyncio, sys
sys.path.insert(0, "python")
import redis.asyncio, holdfast_asyncio
async def main():
    try:
        async with asyncio.timeout(0.7):
            async with holdfast_asyncio.lock(redis.asyncio.Redis(host=sys.argv[1], port=int(sys.argv[2])), sys.argv[3]):
                pass
    except Exception as e:
        print(type(e).__name__)
asyncio.run(main())
`},
	} {
		t.Run(language, func(t *testing.T) {
			w := of(t, language)
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			l := acquire(t, t.Name())
			said, err := exec.CommandContext(ctx, w.argv[0], text[0], text[1], bed.host, bed.port, t.Name()).CombinedOutput()
			require.NoError(t, err, "%s", said)
			require.Regexp(t, `^(Timeout::Error|TimeoutError)\n$`, string(said))
			waits(t, bed.c, t.Name(), 0)
			release(t, l)
		})
	}
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
			for range 5 {
				said, err := shell(ctx, "600000", "at once "+strconv.Itoa(i), "true").CombinedOutput()
				if !assert.NoError(t, err, "%s", said) {
					return
				}
			}
		})
	}
	all.Wait()
}

// underShell starts holdfast.sh with a command that runs until stdin is closed, in a process group of its own.
func underShell(t *testing.T, lock string) (cmd *exec.Cmd, stdin io.Closer) {
	t.Helper()
	of(t, "sh")
	input, stdin, err := os.Pipe()
	require.NoError(t, err)
	cmd = shell(t.Context(), "12000", lock, "sh", "-c", "echo held; read -r line || :")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdin = input
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	require.NoError(t, input.Close())
	_, err = stdout.Read(make([]byte, 5))
	require.NoError(t, err)
	return cmd, stdin
}

// A holdfast.sh that is killed leaves its command running. The lock is renewed for as long as that,
// and no longer, although nobody waits for the command: on Linux it stays a zombie of this process.
func TestTheShellIsKilled(t *testing.T) {
	t.Parallel()
	cmd, stdin := underShell(t, "killed")
	renewed(t, "killed") // what renews the lock is started behind the command
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	renewed(t, "killed")
	require.NoError(t, stdin.Close())
	release(t, acquire(t, "killed"))
}

// Ctrl-\ at the terminal reaches all processes of the group. The command ends, and the lock is given back.
func TestTheShellIsQuit(t *testing.T) {
	t.Parallel()
	cmd, stdin := underShell(t, "quit")
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGQUIT))
	_ = cmd.Wait()
	require.Equal(t, 131, cmd.ProcessState.ExitCode())
	require.False(t, inspect(t, "quit").Held)
	require.NoError(t, stdin.Close())
}

// Python and Go share values of any bytes: who waits gets the one that is made, and so does who comes later. A full
// server keeps none, and who made it has it all the same.
func TestPythonsValues(t *testing.T) {
	t.Parallel()
	python := of(t, "python")
	d := server.Single(t, server.Owned())
	d.Load(t)
	c, err := client.Open(d.ClientOption(), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	host, port, err := net.SplitHostPort(d.Addrs()[0])
	require.NoError(t, err)
	start := func(text string) *running {
		return python.start(t, host, port, "value", "v", "20000", forEver, "60", text)
	}
	do := func(words ...string) {
		t.Helper()
		_, err := d.Nodes()[0].Do(t.Context(), words...)
		require.NoError(t, err)
	}
	gets := func(r *running, text string) {
		t.Helper()
		require.Equal(t, hex.EncodeToString([]byte(text+"\x00\xff")), r.expect("got")[1])
	}
	first := start("one")
	first.expect("making")
	second, values := start("two"), make(chan []byte, 1)
	go func() {
		defer close(values)
		value, _ := c.OnceValue(t.Context(), "v", time.Minute, func(context.Context) ([]byte, error) { return nil, nil })
		values <- value
	}()
	waits(t, c, "v", 2)
	require.NoError(t, first.stdin.Close())
	gets(first, "one")
	gets(second, "one")
	require.Equal(t, "one\x00\xff", string(<-values))
	gets(start("three"), "one")

	_, err = c.Break(t.Context(), "v", "for the test")
	require.NoError(t, err)
	value := func(context.Context) ([]byte, error) { return []byte("go\x00\xff"), nil }
	_, err = c.OnceValue(t.Context(), "v", time.Minute, value, client.WithFreshAnswer())
	require.NoError(t, err)
	gets(start("four"), "go")

	_, err = c.Break(t.Context(), "v", "for the test")
	require.NoError(t, err)
	full := start("five")
	full.expect("making")
	do("CONFIG", "SET", "maxmemory", "1")
	require.NoError(t, full.stdin.Close())
	gets(full, "five")
	do("CONFIG", "SET", "maxmemory", "0")
	again := start("six")
	again.expect("making")
	require.NoError(t, again.stdin.Close())
	gets(again, "six")
}
