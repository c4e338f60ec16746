// SPDX-License-Identifier: Apache-2.0

package holdfastotel_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/client"
	holdfastotel "github.com/holdfast-go/holdfast/client/adapter/otel"
	"github.com/holdfast-go/holdfast/client/locktest"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// Labels are text from others: what is no span is none.
func TestLabelsOfOthers(t *testing.T) {
	for _, label := range []string{"", " ", "worker", "worker 7", "00-0af7651916cd43dd8448eb211c80319c", parent + "x", parent + " ",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "zz" + parent[2:], strings.Repeat("0", 55), "a\x00b " + parent[:54]} {
		require.False(t, holdfastotel.Labelled(label).IsValid(), "%q", label)
	}
	for _, label := range []string{parent, " " + parent, "worker 7: " + parent} {
		span := holdfastotel.Labelled(label)
		require.True(t, span.IsValid(), "%q", label)
		require.Equal(t, "b7ad6b7169203331", span.SpanID().String())
		require.True(t, span.IsRemote())
	}
}

func TestTheLengthOfALabel(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		p := newProcess(t, nil)
		c := s.Client(client.Config{})
		within, _ := p.within("caller")
		l, err := c.Acquire(within, "x", holdfastotel.Label(within, strings.Repeat("a", 72)))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		l, err = c.Acquire(within, "x", holdfastotel.Label(within, strings.Repeat("a", 73))) // without the span
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		l, err = c.Acquire(ctx, "x", holdfastotel.Label(ctx, strings.Repeat("a", 128)))
		require.NoError(t, err)
		require.NoError(t, l.Release(ctx))
		unsampled := trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
		l, err = c.Acquire(ctx, "x", holdfastotel.Label(unsampled, "plain"))
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(l.Owner(), ":plain"), l.Owner())
		require.NoError(t, l.Release(ctx))
	})
}
