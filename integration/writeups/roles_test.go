package writeups

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// What makes this test binary another process, with a role to play. It prints
// what it did, a line each, and reads lines that tell it to go on.
const (
	roleVariable = "HOLDFAST_WRITEUPS_ROLE"
	jobVariable  = "HOLDFAST_WRITEUPS_JOB"
)

var roles = map[string]func() error{
	"increment":    increment,
	"naive unlock": naiveUnlock,
	"unlock":       unlock,
	"hold":         hold,
}

type job struct {
	Addr, Username, Password string
	DB                       int
	Prefix                   string
	Times                    int
}

// actor is what a role has.
type actor struct {
	job
	redis rueidis.Client
	locks *client.Client
	stdin *bufio.Reader
}

func act() (*actor, context.Context, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	context.AfterFunc(ctx, cancel)
	a := &actor{stdin: bufio.NewReader(os.Stdin)}
	if err := json.Unmarshal([]byte(os.Getenv(jobVariable)), &a.job); err != nil {
		return nil, nil, err
	}
	option := rueidis.ClientOption{InitAddress: []string{a.Addr}, Username: a.Username, Password: a.Password, SelectDB: a.DB}
	var err error
	if a.redis, err = rueidis.NewClient(option); err != nil {
		return nil, nil, err
	}
	a.locks, err = client.Open(option, client.Config{Prefix: a.Prefix, Lease: long,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	return a, ctx, err
}

func (a *actor) do(ctx context.Context, words ...string) rueidis.RedisResult {
	return a.redis.Do(ctx, a.redis.B().Arbitrary(words...).Build())
}

// says prints a line and waits for one.
func (a *actor) says(line string) error {
	fmt.Println(line)
	_, err := a.stdin.ReadString('\n')
	return err
}

// increment adds to a number, in two steps, under a lock.
func increment() error {
	a, ctx, err := act()
	if err != nil {
		return err
	}
	if err := a.says("ready"); err != nil {
		return err
	}
	for range a.Times {
		err := a.locks.Do(ctx, "counter", func(ctx context.Context) error {
			n, err := a.do(ctx, "GET", a.Prefix+"number").AsInt64()
			if err != nil {
				return err
			}
			return a.do(ctx, "SET", a.Prefix+"number", fmt.Sprint(n+1)).Error()
		})
		if err != nil {
			return err
		}
	}
	fmt.Println("done")
	return nil
}

// naiveUnlock locks with a value of its own, compares it, and deletes the key, with a pause before that.
func naiveUnlock() error {
	a, ctx, err := act()
	if err != nil {
		return err
	}
	key := a.Prefix + "naive"
	if err := a.do(ctx, "SET", key, "child", "NX", "PX", milliseconds(short)).Error(); err != nil {
		return err
	}
	value, err := a.do(ctx, "GET", key).ToString()
	if err != nil || value != "child" {
		return fmt.Errorf("it has %q: %w", value, err)
	}
	if err := a.says("compared"); err != nil {
		return err
	}
	err = a.do(ctx, "DEL", key).Error()
	fmt.Println("deleted")
	return err
}

// unlock takes a lock for a short lease, and releases it when it is told to.
func unlock() error {
	a, ctx, err := act()
	if err != nil {
		return err
	}
	l, err := a.locks.Acquire(ctx, "lock", client.WithLease(short), client.WithoutRenewal())
	if err != nil {
		return err
	}
	if err := a.says("holds " + l.Owner()); err != nil {
		return err
	}
	switch err := l.Release(ctx); {
	case errors.Is(err, client.ErrLost):
		fmt.Println("lost")
	case err == nil:
		fmt.Println("released")
	default:
		return err
	}
	return nil
}

// hold takes a lock and never gives it back.
func hold() error {
	a, ctx, err := act()
	if err != nil {
		return err
	}
	l, err := a.locks.Acquire(ctx, "lock", client.WithLease(alive))
	if err != nil {
		return err
	}
	return a.says("holds " + l.Owner())
}

// process is another process as the test sees it.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Writer
	lines *bufio.Scanner
}

func (s *shop) process(role string, times int) *process {
	s.t.Helper()
	if s.option.TLSConfig != nil {
		s.t.Skip("the other processes of this test do not speak TLS")
	}
	o := s.option
	j, err := json.Marshal(job{o.InitAddress[0], o.Username, o.Password, o.SelectDB, s.prefix, times})
	require.NoError(s.t, err)
	cmd := exec.CommandContext(s.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, jobVariable+"="+string(j))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(s.t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{s.t, cmd, stdin, bufio.NewScanner(stdout)}
}

// hears blocks until the process prints its next line, which must begin so, and
// returns the rest.
func (p *process) hears(begin string) string {
	p.t.Helper()
	require.True(p.t, p.lines.Scan(), "it ended before it said %q", begin)
	rest, ok := strings.CutPrefix(p.lines.Text(), begin)
	require.True(p.t, ok, "%q instead of %q", p.lines.Text(), begin)
	return strings.TrimSpace(rest)
}

// tells lets it go on.
func (p *process) tells() {
	p.t.Helper()
	_, err := io.WriteString(p.stdin, "\n")
	require.NoError(p.t, err)
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}
