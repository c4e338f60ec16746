// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
			holders[i] = b.spawn(name, 3*time.Second) // a busy machine renews it in time
			waiting[i] = b.Acquire(b.Ctx, c, name)
			b.Line(c, name, 1)
		}
		for i, h := range holders {
			h.Kill()
			ends[i] = b.ends(fmt.Sprint("a", i))
		}
		timers, answers := testbed.Late(), testbed.Worst(func() { // how long an answer of the server takes
			_ = b.Redis.Do(b.Ctx, b.Redis.B().Ping().Build()).Error()
			<-time.After(time.Millisecond)
		})
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

// A process that is paused for longer than its lease learns of the loss by its first look.
func TestAPausedHolder(t *testing.T) {
	b := single(t)
	h := b.spawn("a", 1500*time.Millisecond)
	c := b.open(testbed.Long)
	waiting := b.Acquire(b.Ctx, c, "a")
	b.Line(c, "a", 1)
	h.Signal(syscall.SIGSTOP)
	next := b.Locked(waiting).Lock
	h.Signal(syscall.SIGCONT)
	h.Say("look")
	h.Hear("remaining 0s")
	h.Say("cause")
	require.Contains(t, h.Hear(""), client.ErrLost.Error())
	require.NoError(t, next.Context().Err())
	b.Release(next)
}

// holder is a process that holds a lock.
const holder = "holder"

type job struct {
	Addr, Name string
	Lease      time.Duration
}

// hold takes a lock, says 'held', and answers each line: 'look' with what it believes, 'cause' with
// why the lock ended. It ends with its input.
func hold(p *reexec.Parent) error {
	var j job
	if err := p.Job(&j); err != nil {
		return err
	}
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{j.Addr}}, client.Config{Lease: j.Lease, Label: "child"})
	if err != nil {
		return err
	}
	l, err := c.TryAcquire(context.Background(), j.Name)
	if err != nil {
		return err
	}
	p.Say("held")
	for {
		line, err := p.Hear()
		if err != nil {
			return nil
		}
		switch line {
		case "look":
			p.Say("remaining", l.Remaining())
		case "cause":
			<-l.Context().Done()
			p.Say(context.Cause(l.Context()))
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
