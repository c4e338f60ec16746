package redis_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// A grant that was heard while the server could not be asked is older than what the server answers
// then: also when its token is higher than that of the holder whom the server names, because the
// server has lost its memory of the grant.
func TestAGrantHeardBeforeTheQuestionIsOlderThanItsAnswer(t *testing.T) {
	bubble(t, redis.Options{}, func(t *testing.T, w *redis.World) {
		n := w.Node("a:6379")
		load(t, n)
		a, b := open(t, w, "a", "a:6379"), open(t, w, "b", "a:6379")
		defer a.Close()
		defer b.Close()
		l := must(a.Acquire(ctx, "x"))
		got := make(chan error)
		waiting, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		go func() { _, err := b.Acquire(waiting, "x"); got <- err }()
		time.Sleep(500 * time.Millisecond)
		n.Save()
		w.Stall(redis.Path{Host: "b"}, redis.ToServer)
		time.Sleep(2 * time.Second) // it has asked again meanwhile
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // it has heard of that
		n.Kill()
		n.Restart(redis.FromSave)
		w.Drop(redis.Path{Host: "b"})
		if err := <-got; err == nil {
			t.Error("it has the lock, and the server says that it is another's")
		}
	})
}
