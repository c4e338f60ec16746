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

// said is what a program in a language prints.
func said(t *testing.T, language string, args ...string) string {
	t.Helper()
	w := of(t, language)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.argv[0], args...)
	cmd.Env = append(os.Environ(), w.env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
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
			of(t, language)
			l := acquire(t, t.Name())
			require.Regexp(t, `^(Timeout::Error|TimeoutError)\n$`, said(t, language, text[0], text[1], bed.host, bed.port, t.Name()))
			waits(t, bed.c, t.Name(), 0)
			release(t, l)
		})
	}
}

// A reply that comes after the client's timeout is not taken for that of the next call, on another lock.
func TestAReplyComesLate(t *testing.T) {
	t.Parallel()
	d := server.Single(t, server.Owned())
	d.Load(t)
	host, port, err := net.SplitHostPort(d.Addrs()[0])
	require.NoError(t, err)
	require.Equal(t, "busy", said(t, "phpredis", "-r", `
require "php/holdfast.php";
function client($argv) { $r = new Redis(); $r->connect($argv[1], (int) $argv[2], 1, null, 0, 1); $r->select(1); return $r; }
[$r, $other] = [client($argv), client($argv)];
$other->rawCommand("FCALL", "holdfast_acquire", 1, "lock:b", "other", "60000");
Holdfast\lock($r, "a", function ($lock) use ($other) {
    usleep(2_100_000);
    $other->rawCommand("CLIENT", "PAUSE", "1500", "ALL");
    $lock->renew();
    usleep(800_000);
}, lease: 6);
try {
    Holdfast\lock($r, "b", function ($lock) { echo "held $lock->token"; }, wait: 0);
} catch (Holdfast\Busy) {
    echo "busy";
}
`, "--", host, port))
}

// A lock in a lock is lost. The outer one is given back, and not only when its lease ends.
func TestTheInnerLockIsLost(t *testing.T) {
	t.Parallel()
	for language, text := range map[string]string{"python": `
import sys, time
sys.path.insert(0, "python")
import redis, holdfast
r = redis.Redis(sys.argv[1], int(sys.argv[2]))
try:
    with holdfast.lock(r, sys.argv[3]), holdfast.lock(r, sys.argv[3] + " inner", lease=3) as inner:
        r.execute_command("FCALL", "holdfast_break", 1, inner.key)
        while True:
            inner.check()
            time.sleep(0.01)
except holdfast.Lost:
    print("lost")
`, "asyncio": `
import asyncio, sys
sys.path.insert(0, "python")
import redis.asyncio, holdfast, holdfast_asyncio
async def main():
    r, lock = redis.asyncio.Redis(host=sys.argv[1], port=int(sys.argv[2])), holdfast_asyncio.lock
    try:
        async with lock(r, sys.argv[3]), lock(r, sys.argv[3] + " inner", lease=3) as inner:
            await r.execute_command("FCALL", "holdfast_break", 1, inner.key)
            await asyncio.sleep(60)
    except holdfast.Lost:
        print("lost")
asyncio.run(main())
`} {
		t.Run(language, func(t *testing.T) {
			require.Equal(t, "lost\n", said(t, language, "-c", text, bed.host, bed.port, t.Name()))
			require.False(t, inspect(t, t.Name()).Held)
		})
	}
}

// Who cancels a block that ends because its lock is lost is heard.
func TestACancelOfABlockThatLostItsLock(t *testing.T) {
	t.Parallel()
	require.Equal(t, "cancelled\n", said(t, "asyncio", "-c", `
import asyncio, sys
sys.path.insert(0, "python")
import redis.asyncio, holdfast_asyncio
async def work(r, ends):
    async with holdfast_asyncio.lock(r, sys.argv[3], lease=3) as lock:
        try:
            await r.execute_command("FCALL", "holdfast_break", 1, lock.key)
            await asyncio.sleep(60)
        finally:
            ends.set()
            await asyncio.sleep(60)
async def main():
    ends = asyncio.Event()
    task = asyncio.create_task(work(redis.asyncio.Redis(host=sys.argv[1], port=int(sys.argv[2])), ends))
    await ends.wait()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")
asyncio.run(main())
`, bed.host, bed.port, t.Name()))
}

// The signal that ends a wait can be the program's own: it keeps nothing of a lock that was taken.
func TestNodeForgetsTheSignal(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0\n", said(t, "node", "-e", `
const [host, port, name] = process.argv.slice(1);
const { signal } = new AbortController();
(async () => {
  const client = require("redis").createClient({ socket: { host, port: Number(port) } });
  await client.connect();
  const { withLock } = require("./node/holdfast.js");
  await withLock(client, name, { signal: AbortSignal.abort() }, () => console.log("it ran")).catch(() => {});
  await withLock(client, name, { signal }, async () => {});
  console.log(require("node:events").getEventListeners(signal, "abort").length);
  process.exit();
})();
`, bed.host, bed.port, t.Name()))
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
	said, err := shell(ctx, "600000", t.Name(), "sh", "-c", "exec sh shell/holdfast.sh closed true <&-").CombinedOutput()
	require.NoError(t, err, "without an input: %s", said)
}

// A time that is no number of ms is refused: nobody waits for ever who wanted not to.
func TestTheShellsTimes(t *testing.T) {
	t.Parallel()
	of(t, "sh")
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	l := acquire(t, t.Name())
	for _, option := range []string{"-w1s", "-w1.5", "-l30s"} {
		cmd := shell(ctx, "600000", option, t.Name(), "true")
		said, _ := cmd.CombinedOutput()
		require.Equal(t, 64, cmd.ProcessState.ExitCode(), "%s", said)
	}
	release(t, l)
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
