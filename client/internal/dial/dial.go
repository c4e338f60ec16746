// SPDX-License-Identifier: Apache-2.0

// Package dial makes rueidis clients with the options that locks need, over connections that can be
// ended whatever rueidis waits for.
package dial

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/redis/rueidis"
)

// NoAddress reports whether there is no address, or one that is neither host and port nor a path, as a URL is.
// Who dials by himself may give other ones.
func NoAddress(option rueidis.ClientOption) bool {
	return len(option.InitAddress) == 0 || option.DialCtxFn == nil && slices.ContainsFunc(option.InitAddress, func(addr string) bool {
		_, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		return err != nil && !strings.HasPrefix(addr, "/")
	})
}

const (
	// flushDelay costs one goroutine alone nothing: rueidis pauses only between two flushes that
	// follow each other closely. With 64 goroutines on distinct locks it saves the client a third of
	// its CPU time and Redis a fifth (in write calls). Much shorter than a round trip.
	flushDelay = 20 * time.Microsecond

	// The read and the write buffer of a connection. rueidis has 512 KiB each, for large values: a pipeline of
	// 256 renewals is of 40 KiB.
	buffer = 64 << 10
	// More than a slot that moves needs.
	redirections = 16
	// Each time up to four nodes are asked for the slots, and the client computes for 2 ms.
	refreshNodes = 5 * time.Second
	// Longer: a look at a silent primary lasts until its connection ends, and rueidis follows no sentinel
	// meanwhile. So it is some 9 s late with a failover in that time.
	refreshSentinels = 15 * time.Second
	// Between two dials to a sentinel: see pace.
	sentinelPause = time.Second
	// Connections are renewed no more often: the new ones may lead to a replica again. Longer than a
	// connect, shorter than a lease.
	renewPause = time.Second
)

// Adapt returns the options with these changes, and whether the last one is among them:
//
//   - PipelineMultiplex -1 where it is 0
//   - AlwaysPipelining
//   - MaxFlushDelay 20 us where it is 0
//   - ReadBufferEachConn and WriteBufferEachConn 64 KiB where they are 0
//   - ConnLifetime 0
//   - ClusterOption.MaxMovedRedirections 16 where it is 0
//   - ClusterOption.ShardsRefreshInterval 5 s and Sentinel.TopologyRefreshInterval 15 s where they are 0
//   - Sentinel.Dialer with the Timeout and the KeepAlive of Dialer where they are 0
//   - ConnWriteTimeout 10 s where it is 0
//   - SendToReplicas is not asked about SSUBSCRIBE
//   - connections are counted in wires, which dial a sentinel once a second, and know it by the Resolver of
//     Sentinel.Dialer, which is a copy
//   - client-side caching in mode OPTIN NOLOOP, unless DisableCache, AlwaysRESP2 or
//     ClientTrackingOptions say otherwise; invalidated is then called beside OnInvalidations
func Adapt(option rueidis.ClientOption, wires *Wires, invalidated func([]rueidis.RedisMessage)) (
	_ rueidis.ClientOption, caching bool) {
	// By default rueidis spreads commands over 4 connections to a node, so that an acquire could overtake the
	// release before it. Unnecessary once rueidis chooses the connection by the key.
	option.PipelineMultiplex = cmp.Or(option.PipelineMultiplex, -1)
	// Otherwise a connection that ended while it was idle fails the next call. Unnecessary once rueidis
	// reads while nobody waits.
	option.AlwaysPipelining = true
	option.MaxFlushDelay = cmp.Or(option.MaxFlushDelay, flushDelay)
	option.ReadBufferEachConn = cmp.Or(option.ReadBufferEachConn, buffer)
	option.WriteBufferEachConn = cmp.Or(option.WriteBufferEachConn, buffer)
	// At the end of a lifetime rueidis repeats commands, even those that must not be. Unnecessary
	// once it checks that, as it does after other errors.
	option.ConnLifetime = 0
	// Two nodes that name each other, as of a slot that is on its way and whose target failed over, would be
	// asked in turn without a pause, and a call without a deadline for ever.
	option.ClusterOption.MaxMovedRedirections = cmp.Or(option.ClusterOption.MaxMovedRedirections, redirections)
	// Otherwise rueidis looks for new primaries after an error only, which a node that fell silent does not
	// give for 11 s, or when a sentinel has told it, whom nobody hears who reconnects in a bad moment.
	option.ClusterOption.ShardsRefreshInterval = cmp.Or(option.ClusterOption.ShardsRefreshInterval, refreshNodes)
	option.Sentinel.TopologyRefreshInterval = cmp.Or(option.Sentinel.TopologyRefreshInterval, refreshSentinels)
	// rueidis has these for the nodes alone: a sentinel that fell silent was listened to for ever.
	// Unnecessary once it has them for both.
	sentinels := &option.Sentinel.Dialer
	sentinels.Timeout = cmp.Or(sentinels.Timeout, option.Dialer.Timeout, rueidis.DefaultDialTimeout)
	sentinels.KeepAlive = cmp.Or(sentinels.KeepAlive, option.Dialer.KeepAlive, rueidis.DefaultTCPKeepAlive)
	// It would be ten times KeepAlive, which is rueidis' ping: five minutes of a silent server with one of 30 s.
	option.ConnWriteTimeout = cmp.Or(option.ConnWriteTimeout, rueidis.DefaultTCPKeepAlive*10)
	if theirs := option.SendToReplicas; theirs != nil {
		// rueidis counts SSUBSCRIBE as a read, but a primary does not see the subscribers of its
		// replicas, so it would not hand a lock over to them. Unnecessary once rueidis asks about
		// subscriptions separately.
		option.SendToReplicas = func(cmd rueidis.Completed) bool {
			return !strings.EqualFold(cmd.Commands()[0], "SSUBSCRIBE") && theirs(cmd)
		}
	}
	wires.count(&option)
	wires.single = option.PipelineMultiplex == -1 && option.RingScaleEachConn == 0 && !option.DisableAutoPipelining
	option.DisableCache = option.DisableCache || option.AlwaysRESP2 // or else rueidis does not connect
	if option.DisableCache || len(option.ClientTrackingOptions) > 0 {
		return option, false
	}
	option.ClientTrackingOptions = []string{"OPTIN", "NOLOOP"}
	theirs := option.OnInvalidations
	option.OnInvalidations = func(messages []rueidis.RedisMessage) {
		invalidated(messages)
		if theirs != nil {
			theirs(messages)
		}
	}
	return option, true
}

// Open connects with adapted options, as rueidis.NewClient does, until ctx ends. If the server refuses
// tracking, it connects without: then caching is false, and refused says why. err is one of rueidis.
func Open(ctx context.Context, option rueidis.ClientOption, invalidated func([]rueidis.RedisMessage)) (
	redis rueidis.Client, wires *Wires, caching bool, refused, err error) {
	wires = NewWires()
	stop := context.AfterFunc(ctx, wires.Close)
	adapted, caching := Adapt(option, wires, invalidated)
	redis, err = rueidis.NewClient(adapted)
	if caching && err != nil && fcall.Lasting(err) {
		// rueidis turns tracking on while it connects, and does not connect if that fails. Unnecessary
		// once it goes on without.
		caching, refused = false, err
		adapted.DisableCache, adapted.ClientTrackingOptions = true, nil
		redis, err = rueidis.NewClient(adapted)
	}
	if !stop() && err == nil {
		redis.Close()
		err = ctx.Err()
	}
	if err != nil {
		wires.Close()
		return nil, nil, false, refused, err
	}
	return redis, wires, caching, refused, nil
}
