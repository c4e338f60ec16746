// SPDX-License-Identifier: Apache-2.0

// Package sentinels asks the sentinels that watch a primary what they know of it.
package sentinels

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
)

// Dial opens a client to one sentinel.
type Dial func(ctx context.Context, addr string) (rueidis.Client, error)

// Known is what a sentinel says of a primary.
type Known struct {
	Primary string // its address
	// Replicas are all that ever followed it, until somebody resets the sentinels: those too that the
	// primary does not name, because they are cut off from it. Down are those that do not answer.
	Replicas []cluster.Node
	Others   []string // addresses of the other sentinels
}

// Ask asks one sentinel after the other, until one knows the primary of this name, and it is not at that
// address. One that hangs leaves the others their shares of the time.
func Ask(ctx context.Context, dial Dial, addrs []string, name, not string) Known {
	for i, addr := range addrs {
		if k, err := one(ctx, dial, addr, name, len(addrs)-i); err == nil && k.Primary != not {
			return k
		}
	}
	return Known{}
}

// one asks the first of so many sentinels.
func one(ctx context.Context, dial Dial, addr, name string, of int) (Known, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(of))
		defer cancel()
	}
	redis, err := dial(ctx, addr)
	if err != nil {
		return Known{}, err
	}
	defer redis.Close()
	return From(ctx, redis, name)
}

// From asks one sentinel. What its user may not ask for stays empty.
func From(ctx context.Context, redis rueidis.Client, name string) (Known, error) {
	ask := func(words ...string) rueidis.RedisResult {
		return redis.Do(ctx, redis.B().Arbitrary("SENTINEL").Args(words...).Args(name).Build())
	}
	at, err := ask("GET-MASTER-ADDR-BY-NAME").AsStrSlice()
	if rueidis.IsRedisNil(err) {
		return Known{}, fmt.Errorf("it watches no primary %q", name)
	}
	if err != nil || len(at) != 2 {
		return Known{}, errors.Join(err, ctx.Err())
	}
	k := Known{Primary: net.JoinHostPort(at[0], at[1])}
	for _, about := range each(ask("REPLICAS")) {
		node := cluster.Node{Addr: address(about), Role: cluster.Replica, Primary: k.Primary}
		flags := strings.Split(about["flags"], ",")
		node.Down = slices.Contains(flags, "s_down") || slices.Contains(flags, "o_down")
		k.Replicas = append(k.Replicas, node)
	}
	for _, about := range each(ask("SENTINELS")) {
		k.Others = append(k.Others, address(about))
	}
	return k, nil
}

func address(about map[string]string) string { return net.JoinHostPort(about["ip"], about["port"]) }

// each are the maps of a reply; none if there is an error in its place.
func each(reply rueidis.RedisResult) (all []map[string]string) {
	entries, _ := reply.ToArray()
	for _, entry := range entries {
		if about, err := entry.AsStrMap(); err == nil {
			all = append(all, about)
		}
	}
	return all
}
