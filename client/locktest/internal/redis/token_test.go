package redis_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// The key of a lock with a run of tokens is deleted, and the clock set back, by much or by less than the
// run: the next token is above those of the run that may have been used. A step of less than a run that
// comes before any other call is not noticed by the server.
func TestTokensGrowAfterADeletedRunAndAStepBack(t *testing.T) {
	for _, back := range []time.Duration{9 * time.Second, 300 * time.Microsecond} {
		for _, looked := range []bool{back < time.Second, true} {
			bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
				n := w.Node("a:1")
				load(t, n)
				acquire := func(owner string) int64 {
					return n.Do("FCALL", functions.Acquire, "1", "k", owner, "30000", functions.OptTokens, "1000").([]any)[1].(int64)
				}
				first := acquire("a")
				time.Sleep(600 * time.Microsecond)
				if looked {
					n.Do("FCALL_RO", functions.Inspect, "1", "k")
				}
				n.Do("DEL", "k")
				n.SetClock(-back, 0)
				if next := acquire("b"); next < first+600 {
					t.Errorf("%v back: token %d after a run from %d, of which %d may have been used", back, next, first, first+600)
				}
			})
		}
	}
}
