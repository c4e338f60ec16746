// SPDX-License-Identifier: Apache-2.0

package holdfastotel

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/client"
)

// Spans is the part of New's Observer that makes spans, and how many locks and holds it knows.
func Spans(from trace.TracerProvider) (o *client.Observer, known func() (locks, holds int)) {
	s := newSpans(from.Tracer(scope))
	return s.observer(), func() (int, int) {
		s.present.mu.Lock()
		defer s.present.mu.Unlock()
		return len(s.present.locks), len(s.present.holds)
	}
}

// Labelled is the span that a label shows.
var Labelled = labelled
