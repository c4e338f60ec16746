// SPDX-License-Identifier: Apache-2.0

// Package bench measures what locks cost on a deployment, by the client that programs use.
package bench

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/client"
)

// Clients are two of the same deployment, with a prefix of their own: all locks under it are the
// bench's.
type Clients [2]*client.Client

// Close closes those that are there.
func (c Clients) Close() {
	for _, one := range c {
		if one != nil {
			one.Close()
		}
	}
}

// run is one run.
type run struct {
	Settings
	clients Clients
}

// Run measures, and blocks for as long as the settings say and the last calls take; when ctx ends, for the
// grace at most. What was measured until then is in the report. It ends early too when a part had errors only.
func Run(ctx context.Context, clients Clients, s Settings) Report {
	r := &run{s, clients}
	// The yardstick is there even if there was no time for it.
	report := Report{RoundTrip: &Trips{Took: Took{Workers: 1, Errors: []Failure{}}}, Failures: map[Part][]Failure{}}
	for _, part := range r.chosen() {
		if ctx.Err() != nil {
			break
		}
		if r.Say != nil {
			r.Say(part, r.share(part))
		}
		var took Took
		var done int64
		switch part {
		case RoundTrip:
			report.RoundTrip = r.roundTrip(ctx)
			took, done = report.RoundTrip.Took, report.RoundTrip.Count
		case Alone:
			report.Alone = r.pairs(ctx, Alone, 1)
			took, done = report.Alone.Took, report.Alone.Pairs
		case Parallel:
			report.Parallel = r.pairs(ctx, Parallel, r.Workers)
			took, done = report.Parallel.Took, report.Parallel.Pairs
		case Contended:
			report.Contended = r.contended(ctx)
			took, done = report.Contended.Took, report.Contended.HandOffs
		case Renewal:
			report.Renewal = r.renewal(ctx)
			took, done = report.Renewal.Took, report.Renewal.Count
		}
		if len(took.Errors) > 0 {
			report.Failures[part] = took.Errors
			if done == 0 {
				break
			}
		}
	}
	report.Interrupted = ctx.Err() != nil
	report.compare()
	return report
}

// name is that of a lock of Alone and Parallel.
func (r *run) name(i int) string { return fmt.Sprintf("lock-%d", i%r.Locks()) }

const (
	hotName     = "contended"
	renewedName = "renewed"
)
