// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"
)

// errTooFew is that of a grant or a renewal that too few replicas have: nobody counts on it.
var errTooFew = errors.New("too few replicas")

// replicaWait is how long a raw caller lets the server wait for the replicas.
const replicaWait = 500 * time.Millisecond

// replicated sends a command and a WAIT right behind it. Both go by one connection that nobody else
// uses meanwhile, and that follows no redirect: WAIT would run at the old node. A yes counts only
// when all replicas have it.
func (r *rawWorker) replicated(ctx context.Context, command rueidis.Completed) (a answer, err error) {
	c, release := r.redis.Dedicate()
	defer release()
	wait := c.B().Wait().Numreplicas(int64(r.Replicas)).Timeout(replicaWait.Milliseconds()).Build()
	replies := c.DoMulti(ctx, command, wait)
	if a, err = read(replies[0], "FCALL"); err != nil || !a.yes {
		return a, err
	}
	n, err := replies[1].AsInt64()
	if err == nil && n < int64(r.Replicas) && r.Defect != defectUnheard {
		err = errTooFew
	}
	if err != nil {
		return answer{}, err
	}
	return a, nil
}
