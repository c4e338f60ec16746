// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
)

// A lock, and the hosts that want it, in the order in which they come. The first of all goes from hand to hand.
var shop = [][2]string{
	{"stock:7", "web-1 web-2 web-3 web-4 web-5 web-6 web-7 web-8"},
	{"invoice:2026-11", "billing-2 billing-1 billing-3"},
	{"leader:scheduler", "worker-a worker-b worker-c"},
	{"migrate:shop", "deploy-7"},
	{"order:1041", "web-3"},
	{"order:1042", "web-9 web-2"},
}

// open returns when every host has what it wants, or waits for it. They go on until ctx ends.
func open(ctx context.Context, at rueidis.ClientOption) error {
	pid := 1009
	for i, wanted := range shop {
		for place, host := range strings.Fields(wanted[1]) {
			c, err := client.Open(at, client.Config{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return err
			}
			pid += 61
			go work(ctx, c, wanted[0], host, pid, i == 0)
			for info := (client.Info{}); !info.Held || info.Waiters < place; {
				if info, err = c.Inspect(ctx, wanted[0]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// work has the lock again and again for a moment, or once for ever.
func work(ctx context.Context, c *client.Client, lock, host string, pid int, again bool) {
	defer c.Close()
	for more := true; more && ctx.Err() == nil; more = again {
		// The owner string is the one that a client of that process would make.
		owner := fmt.Sprintf("%s:%d:holdfast-picture:%s.1", host, pid, strconv.FormatInt(time.Now().UnixMilli(), 36))
		_ = c.Do(ctx, lock, func(ctx context.Context) error {
			if again {
				time.Sleep(300 * time.Millisecond)
			} else {
				<-ctx.Done()
			}
			return nil
		}, client.WithOwner(owner)) // its error is that the lock was broken, or that ctx has ended
	}
}
