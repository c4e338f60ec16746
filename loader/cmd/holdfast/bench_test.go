// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/bench"
)

type measured struct {
	Command    string
	ExitCode   int `json:"exit_code"`
	Begun      time.Time
	Deployment string
	Addrs      []string
	Servers    []string
	Library    string
	Client     string
	Prefix     string
	Seconds    float64
	Workers    int
	Locks      int
	bench.Report
}

// leavesNothing wants no key on any server of the deployment.
func leavesNothing(t *testing.T, d *server.Deployment) {
	t.Helper()
	for _, n := range d.Nodes() {
		// A replica is told a moment later, and so is the server of a quorum that a majority did not need.
		require.Eventually(t, func() bool {
			size, err := n.Do(context.Background(), "DBSIZE")
			require.NoError(t, err)
			keys, err := size.AsInt64()
			return err == nil && keys == 0
		}, soon, pollEvery, n.Addr)
	}
}

// consistent wants counts that agree with each other; what was not interrupted has all of them.
func consistent(t *testing.T, r measured) {
	t.Helper()
	require.NotZero(t, r.RoundTrip.Count)
	require.Equal(t, 1.0, r.RoundTrip.RoundTrips)
	for workers, p := range map[int]*bench.Pairs{1: r.Alone, r.Workers: r.Parallel} {
		require.Equal(t, workers, p.Workers)
		require.Equal(t, r.Locks, p.Locks)
		require.GreaterOrEqual(t, p.Pairs, int64(workers))
		ordered(t, p.AcquireMS)
		ordered(t, p.ReleaseMS)
		require.NotZero(t, p.AcquireRoundTrips)
	}
	c := r.Contended
	require.Equal(t, 2, c.Clients)
	require.Len(t, c.Served, r.Workers)
	sum := int64(0)
	for _, n := range c.Served {
		sum += n
		require.GreaterOrEqual(t, n, c.ServedMin)
		require.LessOrEqual(t, n, c.ServedMax)
	}
	require.Equal(t, sum, c.HandOffs, "each hand-off serves a worker")
	require.Zero(t, c.InProcess, "each goes over the server")
	ordered(t, c.WaitMS)
	ordered(t, c.HandOffMS)
	require.NotZero(t, r.Renewal.Count)
	ordered(t, r.Renewal.MS)
}

func ordered(t *testing.T, l bench.Latency) {
	t.Helper()
	require.Positive(t, l.P50)
	require.LessOrEqual(t, l.P50, l.P95)
	require.LessOrEqual(t, l.P95, l.P99)
	require.LessOrEqual(t, l.P99, l.Max)
}

func benchAt(t *testing.T, d *server.Deployment, kind string, do doer, more ...string) {
	t.Helper()
	r := do("bench", append([]string{"--for", "2s", "--workers", "4", "--json"}, more...)...)
	require.Equal(t, 0, r.code, r)
	require.Empty(t, r.errors)
	got := decode[measured](t, r)
	require.Equal(t, "bench", got.Command)
	require.Equal(t, kind, got.Deployment)
	require.Equal(t, strings.Split(addresses(d)[1], ","), got.Addrs)
	require.Len(t, got.Servers, 1)
	require.Regexp(t, `^(redis|valkey) \d+\.\d+\.\d+`, got.Servers[0])
	require.Equal(t, functions.Version, got.Library)
	require.NotEmpty(t, got.Client)
	require.False(t, got.Begun.IsZero())
	require.Regexp(t, `^holdfast-bench:[0-9a-f]{8}:$`, got.Prefix)
	require.Equal(t, []any{4, 64}, []any{got.Workers, got.Locks})
	require.False(t, got.Interrupted)
	consistent(t, got)
	leavesNothing(t, d)
}

func TestBenchForPeople(t *testing.T) {
	d, where := loaded(t)
	r := where.do(t, "bench", "--for", "300ms", "--only", "contended", "--only", "renewal")
	require.Equal(t, 0, r.code, r)
	require.Empty(t, r.errors)
	require.NotContains(t, r.out, "\x1b", "no colours but on a terminal")
	for _, part := range []string{"round_trip", "contended", "renewal"} {
		require.Regexp(t, `(?m)^`+part+` +`, r.out)
	}
	require.NotContains(t, r.out, "alone")
	require.NotContains(t, r.out, "parallel")
	leavesNothing(t, d)
}

// benching begins a bench that would take an hour.
func benching(t *testing.T, args ...string) (cmd *exec.Cmd, out, errs *bytes.Buffer) {
	t.Helper()
	cmd = exec.Command(binary, append([]string{"bench", "--for", "1h"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, out, errs
}

// benched waits until a bench has a lock whose name begins in this way, and returns its prefix.
func benched(t *testing.T, d *server.Deployment, prefix, name string) string {
	t.Helper()
	var found []string
	require.Eventually(t, func() bool {
		keys, err := d.Nodes()[0].Do(context.Background(), "KEYS", prefix+"*:"+name+"*")
		require.NoError(t, err)
		found, err = keys.AsStrSlice()
		require.NoError(t, err)
		return len(found) > 0
	}, soon, pollEvery)
	return found[0][:strings.LastIndex(found[0], ":")+1]
}

// interrupted runs a bench, and interrupts it when it has a lock whose name begins in this way.
func interrupted(t *testing.T, d *server.Deployment, name string, args ...string) result {
	t.Helper()
	prefix := "holdfast-bench:" + strings.Join(args, "") + ":"
	cmd, out, errs := benching(t, append(append(args, "--prefix", prefix), addresses(d)...)...)
	benched(t, d, prefix, name)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait() // the exit code says it
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

func TestAnInterruptedBenchLeavesNothing(t *testing.T) {
	d, _ := loaded(t)
	t.Cleanup(func() { leavesNothing(t, d) })
	for part, lock := range map[string]string{"alone": "lock-", "parallel": "lock-", "contended": "contended",
		"renewal": "renewed"} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			r := interrupted(t, d, lock, "--only", part, "--json")
			require.Equal(t, 0, r.code, r)
			require.Contains(t, r.errors, "interrupted")
			got := decode[measured](t, r)
			require.True(t, got.Interrupted)
			require.NotZero(t, got.RoundTrip.Count)
			has := map[string]bool{"alone": got.Alone != nil, "parallel": got.Parallel != nil,
				"contended": got.Contended != nil, "renewal": got.Renewal != nil}
			for name, measured := range has {
				require.Equal(t, name == part, measured, name)
			}
		})
	}
}

func TestBenchOnATerminal(t *testing.T) {
	d, where := loaded(t)
	s := inTerminal(t, nil, append([]string{"bench", "--for", "1h", "--only", "contended"}, where...)...)
	s.sees("contended, for 59m58s ...") // the part before it is over in two seconds, and a slow terminal shows nothing of it
	s.types("\x03")                     // interrupt
	require.Equal(t, 0, s.ends(), "%q", s.shown())
	require.Contains(t, s.shown(), "hand-off")
	require.Contains(t, s.shown(), "interrupted")
	leavesNothing(t, d)
}

func TestABenchCountsFailures(t *testing.T) {
	d, where := loaded(t)
	cmd, out, _ := benching(t, append(where, "--only", "parallel", "--json", "--timeout", "4s")...)
	// One of its workers waits, so that a call is under way when the server dies.
	other := open(t, d.ClientOption(), client.Config{Prefix: benched(t, d, "holdfast-bench:", "lock-")})
	_, err := other.Acquire(context.Background(), "lock-0")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := other.Inspect(context.Background(), "lock-0")
		return err == nil && info.Waiters > 0
	}, soon, pollEvery)
	require.NoError(t, d.Nodes()[0].Kill())
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait() // the exit code says it
	require.Equal(t, 3, cmd.ProcessState.ExitCode(), out.String())
	var got measured
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, 3, got.ExitCode)
	require.NotEmpty(t, got.Parallel.Errors)
	require.NotZero(t, got.Parallel.Errors[0].Count)
	require.NotEmpty(t, got.Parallel.Errors[0].Kind)
}

// The lock that is tried before anything is measured counts too.
func TestABenchInterruptedAtItsFirstLock(t *testing.T) {
	d, _ := loaded(t)
	proxy := server.NewProxy(t, d.Addrs()[0])
	proxy.DropReplies(1_000_000, "holdfast_release")
	cmd, out, errs := benching(t, "--addr", proxy.Addr)
	require.Eventually(t, func() bool { return proxy.Dropped() > 0 }, soon, pollEvery)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_ = cmd.Wait() // the exit code says it
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), errs.String())
	require.Empty(t, out.String(), "nothing was measured")
}
