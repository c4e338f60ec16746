package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// The message of a break arrives while a renewal is on its way, and the server refuses that too. Renew
// must not say that the lock is held.
func TestARenewalThatABreakOvertakesFails(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:1")
		load(t, n)
		c := open(t, w, "c", "a:1")
		defer c.Close()
		l := must(c.Acquire(ctx, "x"))
		time.Sleep(2 * time.Second) // it is tracked
		n.Do("FCALL", functions.Break, "1", "lock:x", functions.OptReason, "a test")
		err := l.Renew(ctx)
		assert.ErrorIs(t, context.Cause(l.Context()), client.ErrBroken)
		assert.ErrorIs(t, err, client.ErrBroken)
	})
}
