// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/client/internal/dial"
	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/redis/rueidis"
)

// Open builds the rueidis client too, from the caller's options with these changes:
//
//   - PipelineMultiplex -1 where it is 0: one connection per node for commands, so that a release
//     is never overtaken by the acquire that follows it
//   - AlwaysPipelining: a connection that ends is noticed while nobody waits for an answer
//   - MaxFlushDelay 20 us where it is 0: commands of many goroutines share a packet
//   - ReadBufferEachConn and WriteBufferEachConn 64 KiB where they are 0: an idle client takes half a
//     MiB, and not 1.4
//   - ConnLifetime 0: it would repeat commands that must not be
//   - ClusterOption.MaxMovedRedirections 16 where it is 0: nodes that name each other are not asked for ever
//   - ClusterOption.ShardsRefreshInterval 5 s and Sentinel.TopologyRefreshInterval 15 s where they are 0 (an hour
//     to do without): a primary that fell silent, or whose failover was not heard of, is left for the new one
//   - Sentinel.Dialer with the Timeout and the KeepAlive of Dialer where they are 0: a sentinel that fell
//     silent is not listened to for ever
//   - ConnWriteTimeout 10 s where it is 0: rueidis makes it ten times Dialer.KeepAlive, which is its ping. What a
//     silent server costs is said for a KeepAlive of a second, its default; with a negative one there is no ping
//   - a sentinel is dialed once a second: rueidis would do so without a pause while there is no primary
//   - client-side caching in mode OPTIN NOLOOP, unless DisableCache, AlwaysRESP2 or
//     ClientTrackingOptions say otherwise
//   - SendToReplicas is not asked about SSUBSCRIBE: messages are for those who subscribe at the primary
//   - connections are counted, so that Close can end those of a silent server. DisableTCPNoDelay has
//     no effect on them: a command that waits for company is late
//
// Where the server refuses tracking, Open connects without, and says so in the log. It connects, so
// it blocks as rueidis.NewClient does: for Dialer.Timeout (5 s by default) for each address. Close
// closes that client, and Redis returns it.
//
// Errors: ErrArgument for a bad Config, or an address that is none (rueidis.ParseURL makes one of a URL),
// ErrUnreachable when no server answers, ErrDenied when it refuses the credentials.
func Open(option rueidis.ClientOption, cfg Config) (*Client, error) {
	return OpenContext(context.Background(), option, cfg)
}

// OpenContext is Open that gives up when ctx ends, which has no meaning after that. In a Cluster it can take
// a second longer: rueidis is looking for the nodes.
//
// Errors: as Open, and those of a context that had ended, or was cancelled, as TryAcquire.
func OpenContext(ctx context.Context, option rueidis.ClientOption, cfg Config) (*Client, error) {
	c, err := build(cfg, false)
	if err == nil {
		err = begun(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("holdfast: open: %w", err)
	}
	redis, wires, caching, refused, err := dial.Open(ctx, option, c.cache.Invalidated)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			err = c.ended(ctx, ctx.Err())
		case dial.NoAddress(option):
			err = fmt.Errorf("%w: InitAddress: %w", ErrArgument, err)
		default:
			err = fcall.Classify(context.Background(), err)
		}
		return nil, fmt.Errorf("holdfast: open: %w", err)
	}
	c.end = func() { dial.End(redis.Close, closeWait/2, wires) }
	c.connected(redis, wires.Ended(), wires.Renew)
	c.cache.Switch(caching)
	if refused != nil {
		c.events.noTracking(refused)
	}
	return c, nil
}

// untracked: the server refused CLIENT CACHING YES. What will not change ends all use of it.
func (c *Client) untracked(err error) {
	if fcall.Lasting(err) {
		c.cache.Switch(false)
		c.events.noTracking(err)
	}
}
