package locks

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// A lock whose holder is another one than at the last look was handed over; one that is new was not.
func TestHandOversAreCounted(t *testing.T) {
	d := server.Single(t, server.Owned())
	d.Load(t)
	ctx := context.Background()
	option := d.ClientOption()
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	view, err := Open(redis, "lock:")
	require.NoError(t, err)
	t.Cleanup(view.Close)
	call := func(function, key string, args ...string) {
		t.Helper()
		fcall := redis.B().Fcall().Function("holdfast_" + function).Numkeys(1).Key(key).Arg(args...).Build()
		require.NoError(t, redis.Do(ctx, fcall).Error())
	}
	series := Series{View: view, Within: time.Minute}
	look := func(held, waiting, handOvers int) Look {
		t.Helper()
		l := series.Look(ctx, Filter{})
		require.Empty(t, l.Errors)
		require.Equal(t, []int{held, waiting, handOvers}, []int{l.Held, l.Waiting, l.HandOvers})
		require.Equal(t, handOvers > 0, l.PerSecond > 0)
		return l
	}
	call("acquire", "lock:a", "first", "600000")
	call("acquire", "lock:b", "other", "600000")
	call("wait", "lock:a", "second", "600000")
	look(2, 1, 0)
	look(2, 1, 0)
	call("release", "lock:a", "first")
	call("renew", "lock:a", "second", "600000")
	call("acquire", "lock:c", "new", "600000")
	look(3, 0, 1)
	call("release", "lock:a", "second")
	call("renew", "lock:b", "other", "600000")
	look(2, 0, 0)
}
