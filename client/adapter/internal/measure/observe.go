// SPDX-License-Identifier: Apache-2.0

// Package measure says what is measured of locks, once for all adapters: which event of a
// [client.Observer] changes which metric, by which attributes, and what their values are. An adapter
// only carries that to its own library.
package measure

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// Meter is the metrics of an adapter. group is what Group makes of a lock's name; the words are those
// of this package. Its methods are safe for concurrent use.
type Meter interface {
	Waiting(ctx context.Context, group string, change int)
	Waited(ctx context.Context, group, call, outcome string, d time.Duration)
	Held(ctx context.Context, group string, change int)
	Ended(group, end string, d time.Duration)
	Lost(group, cause string)
	Renewed(group, outcome string, d time.Duration)
	Outage()
	Recovery()
}

// Observe returns the Observer that feeds m. group nil puts all locks into one group, "".
func Observe(m Meter, group func(name string) string) *client.Observer {
	if group == nil {
		group = func(string) string { return "" }
	}
	answered := func(ctx context.Context, group string, wait bool, outcome string, asked time.Time) {
		if wait {
			m.Waiting(ctx, group, -1)
		}
		m.Waited(ctx, group, Call(wait), outcome, time.Since(asked))
	}
	ended := func(t client.Tenure) {
		group, end := group(t.Name), End(t)
		m.Held(context.Background(), group, -1)
		m.Ended(group, end, t.Held)
		if errors.Is(t.Err, client.ErrLost) {
			m.Lost(group, end)
		}
	}
	return &client.Observer{
		Asked: func(ctx context.Context, a client.Ask) {
			if a.Wait {
				m.Waiting(ctx, group(a.Name), 1)
			}
		},
		Acquired: func(call, lock context.Context, a client.Acquisition) context.Context {
			group := group(a.Name)
			answered(call, group, a.Wait, Granted(a), a.Asked)
			if !a.Reentered {
				m.Held(call, group, 1)
			}
			return lock
		},
		Refused: func(ctx context.Context, r client.Refusal) {
			answered(ctx, group(r.Name), r.Wait, Kind(r.Err), r.Asked)
		},
		Renewed: func(r client.Renewal) {
			outcome := Renewed
			if r.Err != nil {
				outcome = Kind(r.Err)
			}
			m.Renewed(group(r.Name), outcome, r.Took)
		},
		Released: ended,
		Lost:     ended,
		Connection: func(c client.Connection) {
			if c.Err != nil {
				m.Outage()
			} else {
				m.Recovery()
			}
		},
	}
}
