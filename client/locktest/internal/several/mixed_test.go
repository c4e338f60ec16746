package several

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/quorum"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// Two servers are gone, and two are far away. A renewal that travels with what is given back waits for
// those as others do: that the lost ones need not hear of the giving back is no answer of theirs.
func TestARenewalBesideAGivingBack(t *testing.T) {
	t.Parallel()
	on(t, 5, func(b *bed) {
		members := []quorum.Member{}
		for _, o := range b.options("h1") {
			o.DisableCache = true
			c, err := rueidis.NewClient(o)
			require.NoError(b, err)
			defer c.Close()
			caller := &fcall.Caller{Redis: c, Pulse: fcall.NewPulse(), Heard: func() {}, Changed: func(string) {}, Closing: context.Background()}
			members = append(members, func() (*fcall.Caller, error) { return caller, nil })
		}
		servers := quorum.New(members, context.Background(), func(string, string) {})
		defer servers.Close()
		ask := func(key, owner string) fcall.Reply {
			r, err := servers.Acquire(context.Background(), fcall.Copies{}, key, fcall.Request{Owner: owner, TTL: "10000", Guard: "10000"})
			require.NoError(b, err)
			return r
		}
		mine := ask("lock:mine", "me.1")
		require.True(b, mine.Yes)
		require.True(b, ask("lock:theirs", "they").Yes)
		for _, n := range b.nodes[:2] {
			b.world.Refuse(redis.Path{Node: n}, true)
			b.world.Reset(redis.Path{Node: n})
		}
		for _, n := range b.nodes[3:] {
			b.world.Delay(redis.Path{Node: n}, 100*time.Millisecond)
		}
		time.Sleep(time.Second)
		require.False(b, ask("lock:theirs", "me.2").Yes) // now it is known that two are gone
		time.Sleep(time.Second)
		require.False(b, ask("lock:theirs", "me.3").Yes)
		time.Sleep(time.Second)
		batch := servers.NewBatch(2, fcall.Copies{})
		batch.Renew(false, "lock:mine", fcall.Renewal{Owner: "me.1", TTL: "10000", Fence: mine.Fence})
		batch.Leave("lock:theirs", "me.3", "", 0)
		outcomes := batch.Send(context.Background())
		require.NoError(b, outcomes[0].Err)
		require.True(b, outcomes[0].Reply.Yes)
	})
}
