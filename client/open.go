package client

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/redis/rueidis"
)

// flushDelay costs one goroutine alone nothing: rueidis pauses only between two flushes that follow
// each other closely. With 64 goroutines on distinct locks it saves the client a third of its CPU
// time and Redis a fifth (in write calls).
const flushDelay = 20 * time.Microsecond

// Open builds the rueidis client too, from the caller's options with these changes:
//
//   - PipelineMultiplex -1 where it is 0: one connection per node for commands, so that a release
//     is never overtaken by the acquire that follows it
//   - MaxFlushDelay 20 us where it is 0: commands of many goroutines share a packet
//   - ConnLifetime 0: it would repeat commands that must not be
//   - client-side caching in mode OPTIN NOLOOP, unless DisableCache, AlwaysRESP2 or
//     ClientTrackingOptions say otherwise
//   - SendToReplicas is not asked about SSUBSCRIBE: messages are for those who subscribe at the primary
//   - connections are counted, so that Close can end those of a silent server
//
// Where the server refuses tracking, Open connects without, and says so in the log. It connects, so
// it blocks as rueidis.NewClient does: for Dialer.Timeout (5 s by default) for each address. Close
// closes that client, and Redis returns it.
//
// Errors: ErrArgument for a bad Config, ErrUnreachable when no server answers, ErrDenied when it
// refuses the credentials.
func Open(option rueidis.ClientOption, cfg Config) (*Client, error) {
	if _, _, err := cfg.complete(false); err != nil {
		return nil, fmt.Errorf("holdfast: open: %w", err)
	}
	var self atomic.Pointer[Client]
	w := newWires()
	option, caching := adapt(option, w, &self)
	redis, err := rueidis.NewClient(option)
	refused := error(nil)
	if caching && err != nil && fcall.Lasting(err) {
		refused = err
		option.DisableCache, option.ClientTrackingOptions = true, nil
		redis, err = rueidis.NewClient(option)
	}
	if err != nil {
		w.close()
		return nil, fmt.Errorf("holdfast: open: %w", fcall.Classify(context.Background(), err))
	}
	c, err := New(redis, cfg)
	if err != nil {
		redis.Close()
		return nil, err
	}
	c.deployments[0].wires = w
	c.cache.Switch(caching && refused == nil)
	self.Store(c)
	if refused != nil {
		c.noTracking(refused)
	}
	return c, nil
}

// adapt makes the changes that Open tells of. It reports whether client-side caching is among them.
func adapt(option rueidis.ClientOption, w *wires, self *atomic.Pointer[Client]) (rueidis.ClientOption, bool) {
	if option.PipelineMultiplex == 0 {
		option.PipelineMultiplex = -1
	}
	if option.MaxFlushDelay == 0 {
		option.MaxFlushDelay = flushDelay
	}
	option.ConnLifetime = 0
	w.count(&option)
	if theirs := option.SendToReplicas; theirs != nil {
		option.SendToReplicas = func(cmd rueidis.Completed) bool {
			return !strings.EqualFold(cmd.Commands()[0], "SSUBSCRIBE") && theirs(cmd)
		}
	}
	if option.DisableCache || option.AlwaysRESP2 || len(option.ClientTrackingOptions) > 0 {
		return option, false
	}
	option.ClientTrackingOptions = []string{"OPTIN", "NOLOOP"}
	theirs := option.OnInvalidations
	option.OnInvalidations = func(messages []rueidis.RedisMessage) {
		if c := self.Load(); c != nil {
			c.cache.Invalidated(messages)
		}
		if theirs != nil {
			theirs(messages)
		}
	}
	return option, true
}
