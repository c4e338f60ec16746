package failure

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// The next waiter has a killed holder's lock within 50 ms of the lease's end, also where Redis
// itself is late with expired keys because there are many. The median of a few is judged, all are
// printed: the machine may be busy elsewhere. Then plain timers are late too, and that counts three
// times: for the waiter's own, for the server, and for the goroutine that gets the lock. So does the
// slowest answer of the server meanwhile.
func TestAKilledHoldersLockGoesToTheNextWaiter(t *testing.T) {
	b := serial(t)
	for _, keys := range []int{0, 300_000} {
		const fill = `for i = ARGV[1] + 1, ARGV[1] + 10000 do redis.call('SET', 'other:' .. i, 'x', 'EX', 3600 + i % 1000) end return 1`
		for from := 0; from < keys; from += 10_000 { // a script at a time that a busy machine ends in good time
			require.NoError(t, b.Redis.Do(b.Ctx, b.Redis.B().Eval().Script(fill).Numkeys(0).Arg(strconv.Itoa(from)).Build()).Error())
		}
		c := b.open(testbed.Long)
		var holders [5]*reexec.Child
		var waiting [5]<-chan testbed.Outcome
		var ends [5]time.Time
		for i := range holders {
			name := fmt.Sprint("a", i)
			holders[i] = b.spawn(name, time.Second)
			waiting[i] = b.Acquire(b.Ctx, c, name)
			b.Line(c, name, 1)
		}
		for i, h := range holders {
			h.Kill()
			ends[i] = b.ends(fmt.Sprint("a", i))
		}
		timers, answers := late(), slow(b)
		var delays []time.Duration
		for i := range waiting {
			o := b.Locked(waiting[i])
			delays = append(delays, o.At.Sub(ends[i]))
			b.Release(o.Lock)
		}
		worst, slowest := timers(), answers()
		t.Logf("with %d other keys, after the lease's end: %v; plain timers late by up to %v, an answer by %v", keys, delays, worst, slowest)
		slices.Sort(delays)
		require.Greater(t, delays[0], -20*time.Millisecond, "never before it")
		require.Less(t, delays[len(delays)/2], 50*time.Millisecond+3*(worst+slowest))
	}
}

// slow asks the server all the time, and returns how long the slowest answer took.
func slow(b *bed) func() time.Duration {
	ctx, cancel := context.WithCancel(b.Ctx)
	worst := make(chan time.Duration)
	go func() {
		most := time.Duration(0)
		for ctx.Err() == nil {
			since := time.Now()
			_ = b.Redis.Do(context.WithoutCancel(ctx), b.Redis.B().Ping().Build()).Error()
			most = max(most, time.Since(since))
			<-time.After(time.Millisecond)
		}
		worst <- most
	}()
	return func() time.Duration {
		cancel()
		return <-worst
	}
}

// A process that is paused for longer than its lease learns of the loss by its first look, and what
// it writes without looking is refused by its token.
func TestAPausedHolder(t *testing.T) {
	b := single(t)
	h := b.spawn("a", 1500*time.Millisecond)
	h.Say("write stock")
	h.Hear("written true <nil>")
	c := b.open(testbed.Long)
	waiting := b.Acquire(b.Ctx, c, "a")
	b.Line(c, "a", 1)
	h.Signal(syscall.SIGSTOP)
	next := b.Locked(waiting).Lock
	done, err := writeFenced(b.Ctx, b.Redis, "stock", next.Fence(), "of the next holder")
	require.NoError(t, err)
	require.True(t, done)
	h.Signal(syscall.SIGCONT)
	h.Say("look")
	h.Hear("remaining 0s")
	h.Say("write stock")
	h.Hear("written false <nil>")
	h.Say("cause")
	require.Contains(t, h.Hear(""), client.ErrLost.Error())
	require.NoError(t, next.Context().Err())
	b.Release(next)
}

// fencedWrite is the resource's side of fencing: a write with a token lower than one it has seen is
// refused.
const fencedWrite = `local seen = tonumber(redis.call('HGET', KEYS[1], 'token') or 0)
if tonumber(ARGV[1]) < seen then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'value', ARGV[2])
return 1`

func writeFenced(ctx context.Context, redis rueidis.Client, key string, fence int64, value string) (bool, error) {
	n, err := redis.Do(ctx, redis.B().Eval().Script(fencedWrite).Numkeys(1).Key(key).Arg(fmt.Sprint(fence), value).Build()).AsInt64()
	return n == 1, err
}

// holder is a process that holds a lock.
const holder = "holder"

type job struct {
	Addr, Name     string
	Lease, MinHold time.Duration
}

// hold takes a lock, says 'held', and answers each line: 'look' with what it believes, 'cause' with
// why the lock ended, 'write KEY' with whether the fenced write was done. It ends with its input.
func hold(p *reexec.Parent) error {
	var j job
	if err := p.Job(&j); err != nil {
		return err
	}
	option := rueidis.ClientOption{InitAddress: []string{j.Addr}}
	c, err := client.Open(option, client.Config{Lease: j.Lease, Label: "child"})
	if err != nil {
		return err
	}
	l, err := c.TryAcquire(context.Background(), j.Name, client.WithMinHold(j.MinHold))
	if err != nil {
		return err
	}
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	p.Say("held")
	for {
		line, err := p.Hear()
		if err != nil {
			return nil
		}
		verb, key, _ := strings.Cut(line, " ")
		switch verb {
		case "look":
			p.Say("remaining", l.Remaining())
		case "cause":
			<-l.Context().Done()
			p.Say(context.Cause(l.Context()))
		case "write":
			done, err := writeFenced(context.Background(), redis, key, l.Fence(), "of the child")
			p.Say("written", done, err)
		}
	}
}

// spawn starts a process that holds a lock.
func (b *bed) spawn(name string, lease time.Duration) *reexec.Child {
	b.TB.Helper()
	c := reexec.Spawn(b.TB, holder, job{Addr: b.D.Nodes()[0].Addr, Name: name, Lease: lease})
	c.Hear("held")
	return c
}
