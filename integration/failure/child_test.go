package failure

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// childEnv makes this test program a holder instead: 'address name lease'.
const childEnv = "HOLDFAST_TEST_CHILD"

// fencedWrite is the resource's side of fencing: a write with a token lower than one it has seen is refused.
const fencedWrite = `local seen = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
if tonumber(ARGV[1]) < seen then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
return 1`

func writeFenced(ctx context.Context, redis rueidis.Client, key string, fence int64, value string) (bool, error) {
	n, err := redis.Do(ctx, redis.B().Eval().Script(fencedWrite).Numkeys(1).Key(key).Arg(fmt.Sprint(fence), value).Build()).AsInt64()
	return n == 1, err
}

// child takes a lock, says 'held', and answers each line of its input: 'look' with what it believes, 'write KEY' with
// whether the fenced write was done. It ends with its input.
func child() int {
	var addr, name string
	var lease time.Duration
	var text string
	if _, err := fmt.Sscan(os.Getenv(childEnv), &addr, &name, &text); err != nil {
		return 2
	}
	lease, err := time.ParseDuration(text)
	if err != nil {
		return 2
	}
	option := rueidis.ClientOption{InitAddress: []string{addr}}
	c, err := client.Open(option, client.Config{Lease: lease, Label: "child"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	l, err := c.TryAcquire(context.Background(), name)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	redis, err := rueidis.NewClient(option)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("held")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		verb, key, _ := strings.Cut(in.Text(), " ")
		switch verb {
		case "look":
			fmt.Println("remaining", l.Remaining())
		case "cause":
			<-l.Context().Done()
			fmt.Println(context.Cause(l.Context()))
		case "write":
			done, err := writeFenced(context.Background(), redis, key, l.Fence(), "of the child")
			fmt.Println("written", done, err)
		}
	}
	return 0
}

// holder is a process of the operating system that holds a lock.
type holder struct {
	b   *bed
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (b *bed) spawn(name string, lease time.Duration) *holder {
	b.TB.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s", childEnv, b.D.Nodes()[0].Addr, name, lease))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b.TB, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b.TB, err)
	require.NoError(b.TB, cmd.Start())
	h := &holder{b: b, cmd: cmd, in: in, out: bufio.NewScanner(out)}
	b.TB.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	require.Equal(b.TB, "held", h.line())
	return h
}

func (h *holder) line() string {
	h.b.TB.Helper()
	require.True(h.b.TB, h.out.Scan(), "the child ended")
	return h.out.Text()
}

func (h *holder) ask(question string) string {
	h.b.TB.Helper()
	_, err := fmt.Fprintln(h.in, question)
	require.NoError(h.b.TB, err)
	return h.line()
}

func (h *holder) signal(sig syscall.Signal) {
	h.b.TB.Helper()
	require.NoError(h.b.TB, h.cmd.Process.Signal(sig))
}
