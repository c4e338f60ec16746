// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// roundTrip asks how free locks stand: that is a call of a function which does next to nothing.
func (r *run) roundTrip(ctx context.Context) *Trips {
	asked := 0
	return r.trips(ctx, RoundTrip, func(ctx context.Context) (time.Duration, error) {
		name := r.name(asked)
		asked++
		begun := time.Now()
		_, err := r.clients[0].Inspect(ctx, name)
		return time.Since(begun), err
	})
}

// renewal renews one lock over and over.
func (r *run) renewal(ctx context.Context) *Trips {
	var lock *client.Lock
	report := r.trips(ctx, Renewal, func(ctx context.Context) (took time.Duration, err error) {
		if lock == nil {
			// The lock outlives the calls of this part, which may be cut off, until its release.
			parent := client.WithLockContext(context.WithoutCancel(ctx))
			if lock, err = r.clients[0].Acquire(ctx, renewedName, parent); err != nil {
				return 0, err
			}
		}
		begun := time.Now()
		err = lock.Renew(ctx)
		took = time.Since(begun)
		if err != nil && lock.Remaining() == 0 {
			lock = nil // it is lost
		}
		return took, err
	})
	if lock != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Grace)
		defer cancel()
		if err := lock.Release(ctx); err != nil {
			var failed failures
			failed.add(err)
			report.Errors = append(report.Errors, failed.all()...)
		}
	}
	return report
}

// trips makes calls one after the other.
func (r *run) trips(ctx context.Context, part Part, call func(context.Context) (time.Duration, error)) *Trips {
	var all histogram
	took := r.work(ctx, part, 1, func(ctx context.Context, _ int) error {
		d, err := call(ctx)
		if err == nil {
			all.add(d)
		}
		return err
	})
	return &Trips{Took: took, Count: all.n, PerSecond: perSecond(all.n, took.Seconds), MS: all.latency()}
}
