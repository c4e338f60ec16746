// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

func TestFailuresAreCountedByKind(t *testing.T) {
	var f failures
	require.NotNil(t, f.all(), "JSON has a list")
	f.add(errors.New("holdfast: strange"))
	f.add(fmt.Errorf("acquire: %w", client.ErrNotReplicated))
	f.add(fmt.Errorf("release: %w", client.ErrNotReplicated))
	require.Equal(t, []Failure{{"not_replicated", 2, "acquire: " + client.ErrNotReplicated.Error()},
		{"other", 1, "strange"}}, f.all())
}

func TestKinds(t *testing.T) {
	for kind, err := range map[string]error{
		"no_answer": context.Canceled, "unreachable": client.ErrUnreachable, "timeout": client.ErrTimeout,
		"busy": client.ErrBusy, "lost": client.ErrExpired, "library": client.ErrLibrary, "denied": client.ErrDenied,
		"invalid": client.ErrArgument, "closed": client.ErrClosed,
		"not_replicated": &client.WaitError{Err: client.ErrNotReplicated},
	} {
		require.Equal(t, kind, KindOf(err))
	}
}
