package conformance

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// kinds are what an error can be, and what a web handler answers.
var kinds = map[error]int{
	client.ErrBusy: 409, client.ErrTimeout: 504, client.ErrUnreachable: 503, client.ErrClosed: 503,
	client.ErrLost: 500, client.ErrInvalid: 500, context.Canceled: 499,
}

// only requires that an error is of one kind, and of no other.
func only(tb testing.TB, kind, err error, what ...any) {
	tb.Helper()
	require.Contains(tb, kinds, kind, "not a kind")
	require.ErrorIs(tb, err, kind, what...)
	for other := range kinds {
		if other != kind {
			require.NotErrorIs(tb, err, other, what...)
		}
	}
	if kind != client.ErrTimeout {
		require.False(tb, errors.Is(err, context.DeadlineExceeded), "%v", err)
	}
}
