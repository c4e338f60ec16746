// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"cmp"
	"context"
	"time"

	"github.com/redis/rueidis"
)

// Dialer makes an Options.Dial from the options that the caller's client was built with: the same
// user, password and TLS, to one node. Behind Sentinel it uses what is set for the servers, not
// what is set for the sentinels.
//
//	opt := rueidis.ClientOption{InitAddress: addrs, Username: user, Password: password}
//	client, err := rueidis.NewClient(opt)
//	...
//	report, err := loader.Load(ctx, client, loader.Options{Dial: loader.Dialer(opt)})
func Dialer(opt rueidis.ClientOption) func(context.Context, string) (rueidis.Client, error) {
	opt.Sentinel = rueidis.SentinelOption{}
	opt.Standalone = rueidis.StandaloneOption{}
	opt.ForceSingleClient = true
	opt.ReplicaOnly, opt.SendToReplicas = false, nil
	opt.DisableCache, opt.OnInvalidations, opt.NewCacheStoreFn = true, nil, nil
	opt.SelectDB = 0
	opt.PipelineMultiplex = -1
	return func(ctx context.Context, addr string) (rueidis.Client, error) {
		to := opt
		to.InitAddress = []string{addr}
		if deadline, ok := ctx.Deadline(); ok {
			// rueidis.NewClient takes no context. It waits for the connection, then for the reply
			// to HELLO.
			left := max(time.Until(deadline), time.Millisecond)
			to.Dialer.Timeout = min(cmp.Or(to.Dialer.Timeout, left), left)
			to.ConnWriteTimeout = min(cmp.Or(to.ConnWriteTimeout, left), left)
		}
		return rueidis.NewClient(to)
	}
}
