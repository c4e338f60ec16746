package redis_test

import (
	"io"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/stretchr/testify/require"
)

// A clock that runs faster ends keys earlier by this world's clock, and at the time that it names
// by its own.
func TestDrift(t *testing.T) {
	for _, drift := range []float64{0.1, -0.1} {
		var gone time.Time
		bed.In(t, redis.Options{Hooks: whenExpired(&gone), Early: true}, func(t *testing.T, w *redis.World) {
			n := w.Node("a:1")
			n.SetClock(time.Hour, drift)
			start := time.Now()
			expect(t, n.Now().Sub(start), time.Hour)
			n.Do("SET", "k", "v", "PX", "100000")
			time.Sleep(10 * time.Second)
			ran := n.Now().Sub(start) - time.Hour
			expect(t, ran.Round(time.Millisecond), time.Duration(float64(10*time.Second)*(1+drift)).Round(time.Millisecond))
			time.Sleep(200 * time.Second)
			n.Do("PING")
			require.InDelta(t, float64(100*time.Second)/(1+drift), gone.Sub(start), float64(2*time.Millisecond))
		})
	}
}

// A jump of the clock forward ends what it jumps over; one back prolongs it.
func TestClockJumps(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		n.Do("SET", "k", "v", "PX", "60000")
		n.SetClock(59*time.Second, 0)
		expect(t, n.Do("PTTL", "k"), int64(1000))
		n.SetClock(-time.Minute, 0)
		time.Sleep(90 * time.Second)
		expect(t, n.Do("PTTL", "k"), int64(30000))
		n.SetClock(time.Hour, 0)
		expect(t, n.Do("PTTL", "k"), int64(-2))
	})
}

// What a restart finds: everything, the last save without what is over by now, or nothing.
func TestRestartFromDisk(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		n.Do("SET", "k", "v")
		n.Restart(redis.FromSave)
		expect(t, n.Do("EXISTS", "k"), int64(0))
		bed.Load(t, n)
		call := func() any { return n.Do("FCALL", "holdfast_version", "0") }
		n.Do("HSET", "k", "f", "saved")
		n.Do("SET", "short", "v", "PX", "1000")
		n.Save()
		n.Do("HSET", "k", "f", "later")
		n.Do("SET", "new", "v")
		time.Sleep(2 * time.Second)
		c := dial(t, w, "h", "a:1")
		n.Restart(redis.FromSave)
		_, err := c.reply(time.Second)
		require.ErrorIs(t, err, io.EOF)
		expect(t, n.Hash("k")["f"], "saved")
		expect(t, n.Do("EXISTS", "short", "new"), int64(0))
		expect(t, call(), functions.Version)
		n.Do("HSET", "k", "f", "last")
		n.Restart(redis.Everything)
		expect(t, n.Hash("k")["f"], "last")
		n.Restart(redis.Nothing)
		expect(t, n.Do("DBSIZE"), int64(0))
		expect(t, call(), redis.Error("ERR Function not found"))
	})
}

// A primary that was deposed behind its back goes on, until it is told: then its writes are gone.
func TestDepose(t *testing.T) {
	bed.In(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		p := w.Node("a:1")
		r := w.Replica("b:1", p)
		time.Sleep(time.Second)
		c := dial(t, w, "h", "a:1")
		expect(t, w.Failover(r, redis.Failover{Force: true, Isolated: true}) == p, true)
		time.Sleep(time.Minute)
		c.send("SET", "k", "old")
		expect(t, bed.Must(c.reply(time.Second)), "+OK")
		expect(t, r.Do("SET", "k", "new"), redis.Status("OK"))
		w.Depose(p, r)
		_, err := c.reply(time.Second)
		require.ErrorIs(t, err, io.EOF)
		time.Sleep(time.Second)
		expect(t, p.Do("GET", "k"), "new")
		expect(t, p.Primary() == r, true)
		r.Do("SET", "k", "newer")
		time.Sleep(time.Second)
		expect(t, p.Do("GET", "k"), "newer")
	})
}
