// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// A reason that is too long is cut between two characters: logs and traces take text alone.
func TestAReasonIsText(t *testing.T) {
	c := opened(t)
	for _, begin := range []string{"", "x"} {
		lock, err := c.Acquire(background, t.Name())
		require.NoError(t, err)
		_, err = c.Break(background, t.Name(), begin+strings.Repeat("é", 500))
		require.NoError(t, err)
		<-lock.Context().Done()
		var lost *client.LostError
		require.ErrorAs(t, context.Cause(lock.Context()), &lost)
		require.Greater(t, len(lost.Reason), 500)
		require.True(t, utf8.ValidString(lost.Reason), "%q", lost.Reason)
	}
}
