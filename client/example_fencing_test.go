// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"log"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader"
)

// A holder is paused beyond its lease. Meanwhile another one has the lock and writes. The guard
// library refuses what the first one writes when it wakes up. functions/FENCED.md says more, and
// docs/fencing.md has the same for SQL.
func ExampleFence() {
	ctx := context.Background()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}})
	if err != nil {
		log.Fatal(err)
	}
	defer redis.Close()
	// once, when the application is deployed
	if _, err := loader.Load(ctx, redis, loader.Options{Source: functions.FencedSource}); err != nil {
		log.Fatal(err)
	}
	const stock, fence = "{stock:7}", "{stock:7}:fence" // one hash slot
	redis.Do(ctx, redis.B().Set().Key(stock).Value("12").Build())

	// claim raises the fence before it reads, in one pipeline.
	claim := func(token int64) (left int64, err error) {
		replies := redis.DoMulti(ctx,
			redis.B().Fcall().Function(functions.Claim).Numkeys(1).Key(fence).Arg(strconv.FormatInt(token, 10)).Build(),
			redis.B().Get().Key(stock).Build())
		reply, err := replies[0].AsIntSlice()
		if err != nil {
			return 0, err
		}
		if reply[0] == 0 {
			return 0, fmt.Errorf("refused: token %d was here", reply[1])
		}
		return replies[1].AsInt64()
	}
	write := func(token, left int64) (written bool, err error) {
		reply, err := redis.Do(ctx, redis.B().Fcall().Function(functions.SetIf).Numkeys(2).Key(stock, fence).
			Arg(strconv.FormatInt(token, 10), strconv.FormatInt(left, 10)).Build()).AsIntSlice()
		return err == nil && reply[0] == 1, err
	}

	first, second := open(), open()
	defer first.Close()
	defer second.Close()
	// Nothing renews the lock of a process that is paused.
	lock, err := first.Acquire(ctx, "stock:7", client.WithLease(time.Second), client.WithoutRenewal())
	if err != nil {
		log.Fatal(err)
	}
	left, err := claim(lock.Fence())
	fmt.Println("the first holder reads", left, err)

	err = second.Do(ctx, "stock:7", func(ctx context.Context) error { // waits for the end of the lease
		left, err := claim(client.Fence(ctx))
		if err != nil {
			return err
		}
		written, err := write(client.Fence(ctx), left-1)
		fmt.Println("the second holder sells one:", written)
		return err
	})
	fmt.Println(err)

	written, err := write(lock.Fence(), left-1)
	fmt.Println("the first holder wakes up, and sells one:", written, err)
	// Output:
	// the first holder reads 12 <nil>
	// the second holder sells one: true
	// <nil>
	// the first holder wakes up, and sells one: false <nil>
}
