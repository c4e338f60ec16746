package redis_test

import (
	"bufio"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// raw is a connection that the test speaks on itself.
type raw struct {
	net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, w *redis.World, host, addr string) raw {
	t.Helper()
	c := bed.Must(w.Host(host).Dial(ctx, addr, nil, nil))
	t.Cleanup(func() { _ = c.Close() })
	return raw{c, bufio.NewReader(c)}
}

// send writes an inline-free command of plain words.
func (c raw) send(words ...string) {
	var b strings.Builder
	b.WriteString("*" + itoa(len(words)) + "\r\n")
	for _, w := range words {
		b.WriteString("$" + itoa(len(w)) + "\r\n" + w + "\r\n")
	}
	_, _ = io.WriteString(c, b.String()) // what fails shows in the reply
}

// reply returns the next line, or the error of reading it.
func (c raw) reply(within time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(within))
	line, err := c.r.ReadString('\n')
	return strings.TrimSpace(line), err
}

// silent asserts that nothing arrives.
func (c raw) silent(t *testing.T, within time.Duration) {
	t.Helper()
	_, err := c.reply(within)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func (c raw) ping(t *testing.T) {
	t.Helper()
	c.send("PING")
	expect(t, bed.Must(c.reply(time.Minute)), "+PONG")
}

func TestSilencedConnectionsAreNeverAnswered(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		before := dial(t, w, "h", "a:1")
		w.Silence(redis.Path{Host: "h"}, true)
		during, other := dial(t, w, "h", "a:1"), dial(t, w, "x", "a:1")
		w.Silence(redis.Path{Host: "h"}, false)
		after := dial(t, w, "h", "a:1")
		for _, c := range []raw{before, other, after} {
			c.ping(t)
		}
		during.send("SET", "k", "v")
		during.silent(t, time.Hour)
		expect(t, n.Do("EXISTS", "k"), int64(0))
	})
}

// Stalled packets arrive after Resume, and are lost by Drop.
func TestResumeDeliversAndDropLoses(t *testing.T) {
	bed.Each(t, map[string]bool{"resume": true, "drop": false}, func(t *testing.T, w *redis.World, resume bool) {
		n := w.Node("a:1")
		c, p := dial(t, w, "h", "a:1"), redis.Path{Host: "h"}
		w.Stall(p, redis.ToServer)
		c.send("SET", "k", "v")
		c.silent(t, time.Minute)
		if resume {
			w.Resume(p)
			expect(t, bed.Must(c.reply(time.Second)), "+OK")
			expect(t, n.Do("EXISTS", "k"), int64(1))
			return
		}
		w.Drop(p)
		_, err := c.reply(time.Second)
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		require.Equal(t, "read", op.Op)
		expect(t, n.Do("EXISTS", "k"), int64(0))
		time.Sleep(time.Millisecond) // the server notices
		expect(t, w.Connections(p), 0)
		dial(t, w, "h", "a:1").ping(t)
	})
}

func TestDelay(t *testing.T) {
	bed.In(t, redis.Options{Latency: time.Millisecond}, func(t *testing.T, w *redis.World) {
		w.Node("a:1")
		p := redis.Path{Host: "h"}
		old := dial(t, w, "h", "a:1")
		roundTrip := func(c raw, want time.Duration) {
			t.Helper()
			start := time.Now()
			c.ping(t)
			took := time.Since(start)
			require.GreaterOrEqual(t, took, 2*want)
			require.LessOrEqual(t, took, 2*want+want/2+time.Millisecond)
		}
		roundTrip(old, time.Millisecond)
		w.Delay(p, time.Second)
		roundTrip(old, time.Second)
		start := time.Now()
		fresh := dial(t, w, "h", "a:1")
		require.GreaterOrEqual(t, time.Since(start), 2*time.Second)
		roundTrip(fresh, time.Second)
		roundTrip(dial(t, w, "other", "a:1"), time.Millisecond)
		w.Delay(p, 0)
		roundTrip(old, time.Millisecond)
		roundTrip(dial(t, w, "h", "a:1"), time.Millisecond)
	})
}

// A paused server accepts, answers nothing, deletes nothing, and then executes what it was sent.
func TestPauseAndContinue(t *testing.T) {
	var gone time.Time
	bed.In(t, redis.Options{Hooks: whenExpired(&gone)}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		c := dial(t, w, "h", "a:1")
		n.Do("SET", "old", "v", "PX", "1000")
		n.Pause()
		c.send("SET", "k", "v")
		late := dial(t, w, "h", "a:1")
		late.send("GET", "old")
		c.silent(t, time.Minute)
		require.Nil(t, n.Hash("k"))
		require.Zero(t, gone)
		n.Continue()
		expect(t, bed.Must(c.reply(time.Second)), "+OK")
		expect(t, bed.Must(late.reply(time.Second)), "$-1")
		n.Do("PING")
		require.NotZero(t, gone)
	})
}

// A stall holds up the end of a connection too, and no longer than it lasts.
func TestTheEndOfAConnectionArrivesAfterAStall(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		c, p := dial(t, w, "h", "a:1"), redis.Path{Host: "h"}
		w.Stall(p, redis.ToClient)
		n.Restart(redis.Nothing)
		c.silent(t, time.Minute)
		expect(t, w.Connections(p), 0)
		w.Resume(p)
		_, err := c.reply(time.Minute)
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestAConnectionIsMadeWhenAStallIsOver(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		w.Node("a:1")
		w.Stall(redis.Path{}, redis.ToServer)
		time.AfterFunc(1500*time.Millisecond, func() { w.Resume(redis.Path{}) })
		began := time.Now()
		c := dial(t, w, "h", "a:1")
		expect(t, time.Since(began).Truncate(time.Second), 3*time.Second)
		c.ping(t)
	})
}
