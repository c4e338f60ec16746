// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// The lease of all. Nobody renews later than after a third of it, so to wait for one takes longer than another third.
const (
	leaseOfAll = 30 * time.Second
	longestGap = leaseOfAll / 3
)

// roles are what processes do that tests start.
var roles = map[string]reexec.Role{"worker": worker, "command": commanded}

// begun is the beginning of a process of the fleet: term is closed when it is to end, and note writes a line into the diary of all, in
// the order in which the server hears of it. No context ends that.
func begun(p *reexec.Parent) (option rueidis.ClientOption, term <-chan struct{}, note func(words ...any), err error) {
	var addr string
	if err = p.Job(&addr); err != nil {
		return option, nil, nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	go func() { // or when nobody is there any more
		_, _ = p.Hear()
		stop()
	}()
	option.InitAddress = []string{addr}
	redis, err := rueidis.NewClient(option)
	return option, ctx.Done(), func(words ...any) {
		redis.Do(context.Background(), redis.B().Rpush().Key("diary").Element(fmt.Sprintln(append(words, time.Now().UnixMicro())...)).Build())
	}, err
}

// commanded is what "holdfast run" runs: it works until it is told to end.
func commanded(p *reexec.Parent) error {
	_, term, note, err := begun(p)
	if err == nil {
		note("run", "command", "begin", os.Getenv("HOLDFAST_FENCE"))
		<-term
		note("run", "command", "end", os.Getenv("HOLDFAST_FENCE"))
	}
	return err
}

// worker wants the same locks as all others, by all ways, until it is told to end. What leads, and what is in the place
// of a command, works until then.
func worker(p *reexec.Parent) error {
	option, term, note, err := begun(p)
	if err != nil {
		return err
	}
	c, err := client.Open(option, client.Config{Lease: leaseOfAll})
	if err != nil {
		return err
	}
	work := func(lock string, takes time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			note("worker", lock, "begin", client.Fence(ctx))
			if time.Sleep(takes); takes == 0 {
				<-ctx.Done()
			}
			note("worker", lock, "end", client.Fence(ctx))
			return nil
		}
	}
	ctx := context.Background()
	var all sync.WaitGroup
	for _, way := range []func() error{
		func() error { return c.Do(ctx, "hot", work("hot", time.Millisecond)) },
		func() error {
			lock, err := c.Acquire(ctx, "hot")
			if err != nil {
				return err
			}
			return errors.Join(work("hot", time.Millisecond)(lock.Context()), lock.Release(ctx))
		},
		func() error { return c.Do(ctx, "command", work("command", 0)) },
		func() error { return c.Lead(ctx, "leader", work("leader", 0)) },
		func() error {
			time.Sleep(50 * time.Millisecond)
			_, err := c.Once(ctx, "interval", 2*time.Second, work("interval", time.Second/2))
			return err
		},
	} {
		all.Go(func() {
			for {
				if err := way(); errors.Is(err, client.ErrShutdown) {
					return
				} else if err != nil {
					note("worker", fmt.Sprintf("%q", err), "failed", 0)
				}
			}
		})
	}
	go func() { // the lease of a hand-over is two seconds: those who are paused for longer lose it
		for began := time.Now(); ; began = time.Now() {
			if time.Sleep(50 * time.Millisecond); time.Since(began) > time.Second {
				note("worker", "paused", time.Since(began), 0)
			}
		}
	}()
	p.Say("works")
	<-term
	within, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	err = c.Shutdown(within)
	all.Wait()
	return err
}

// twenty are processes that are replaced one after the other: each fifth one is "holdfast run".
type twenty struct {
	*testing.T
	addr  string
	view  *locks.View
	all   [20]*reexec.Child
	diary []string
	wrong []error
}

func (f *twenty) start(i int) {
	if i%5 == 4 {
		f.all[i] = reexec.Spawn(f, "command", f.addr, func(cmd *exec.Cmd) {
			cmd.Path, cmd.Args = binary, []string{"holdfast", "run", "command", "--addr", f.addr, "--", cmd.Path}
		})
		require.Eventually(f, func() bool {
			info, err := f.view.Client.Inspect(f.Context(), "command")
			return err == nil && info.Holder.PID == f.all[i].Pid() || f.waits("command", f.all[i])
		}, soon, pollEvery)
		return
	}
	f.all[i] = reexec.Spawn(f, "worker", f.addr)
	f.all[i].Hear("works")
}

// waits reports whether a process stands in a line.
func (f *twenty) waits(name string, p *reexec.Child) bool {
	line, err := f.view.Line(f.Context(), name, 0)
	require.NoError(f, err)
	return slices.ContainsFunc(line.Waiters, func(w locks.Waiter) bool { return w.PID == p.Pid() })
}

// gone waits for the end of a process, in good order, and that it stands in no line then. A "run" that has no command
// yet ends as SIGTERM ends one.
func (f *twenty) gone(i int) {
	p := f.all[i]
	if err := p.Wait(); err != nil && (i%5 != 4 || err.Error() != "exit status 143" && err.Error() != "signal: terminated") {
		f.wrong = append(f.wrong, err)
	}
	for _, name := range []string{"hot", "command", "leader", "interval"} {
		require.Eventually(f, func() bool { return !f.waits(name, p) }, longestGap, pollEvery, "it stands in the line of %s", name)
	}
}

// count reads on in the diary, and counts lines that begin so.
func (f *twenty) count(redis rueidis.Client, begin string) (n int) {
	more, err := redis.Do(f.Context(), redis.B().Lrange().Key("diary").Start(int64(len(f.diary))).Stop(-1).Build()).AsStrSlice()
	require.NoError(f, err)
	f.diary = append(f.diary, more...)
	for _, line := range f.diary {
		if strings.HasPrefix(line, begin) {
			n++
		}
	}
	return n
}

// Twenty processes that want the same locks are replaced one after the other, by SIGTERM. No lock waits for a lease,
// none is given on under a function that runs, and nobody who has gone stands in a line.
func TestRollingRestart(t *testing.T) {
	d, _ := loaded(t)
	redis, err := rueidis.NewClient(d.ClientOption())
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	view, err := locks.Open(redis, "lock:")
	require.NoError(t, err)
	t.Cleanup(view.Close)
	f := &twenty{T: t, addr: d.Addrs()[0], view: view}
	await := func(n int, begin string) {
		for until := time.Now().Add(soon); f.count(redis, begin) < n; time.Sleep(pollEvery) {
			require.True(f, time.Now().Before(until), begin)
		}
	}
	for i := range f.all {
		f.start(i)
	}
	began := time.Now()
	for i, p := range f.all {
		for _, name := range []string{"leader", "command"} { // mostly this process has them, and for a whole lease
			require.Eventually(t, func() bool {
				info, err := view.Client.Inspect(t.Context(), name)
				return err == nil && info.Remaining > 2*longestGap-time.Second
			}, soon, pollEvery, name)
		}
		p.Signal(syscall.SIGTERM)
		f.gone(i)
		f.start(i)
		await(f.count(redis, "worker hot begin")+20, "worker hot begin")
	}
	t.Logf("20 processes were replaced in %v", time.Since(began).Round(time.Millisecond))
	for _, p := range f.all {
		p.Signal(syscall.SIGTERM)
	}
	for i := range f.all {
		f.gone(i)
	}
	if f.count(redis, "worker paused") > 0 {
		t.Skipf("processes were paused for more than a second, and may have lost locks: %v", f.wrong)
	}
	require.Empty(t, f.wrong)
	require.Positive(t, f.count(redis, "run command end"))

	gaps, has, end := map[string][]time.Duration{}, map[string]int64{}, map[string]int64{}
	for _, line := range f.diary {
		var by, lock, what string
		var token, at int64
		_, err := fmt.Sscan(line, &by, &lock, &what, &token, &at)
		require.NoError(t, err, line)
		if what == "begin" {
			require.Zero(t, has[lock], "two have it: %s", line)
			if has[lock] = token; end[lock] > 0 {
				gaps[lock] = append(gaps[lock], time.Duration(at-end[lock])*time.Microsecond)
			}
		} else {
			require.Equal(t, "end", what, line)
			require.Equal(t, token, has[lock], line)
			has[lock], end[lock] = 0, at
		}
	}
	require.Equal(t, []string{"command", "hot", "interval", "leader"}, slices.Sorted(maps.Keys(gaps)))
	for lock, g := range gaps {
		slices.Sort(g)
		n := len(g)
		t.Logf("%s: %d times nobody had it, for %v (median), %v (p99), %v (most)", lock, n, g[n/2], g[n*99/100], g[n-1])
		require.Less(t, g[n-1], longestGap, lock)
		info, err := view.Client.Inspect(t.Context(), lock)
		require.NoError(t, err)
		require.Equal(t, [2]any{false, 0}, [2]any{info.Held, info.Waiters}, lock)
	}
}
