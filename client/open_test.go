// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// OpenContext returns when its context ends, also at a server that accepts and never answers; what it has
// opened lives on without it.
func TestOpenContext(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	option := rueidis.ClientOption{InitAddress: []string{silent.Addr().String()}, Dialer: net.Dialer{Timeout: time.Minute}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // which begins before it has ended
	defer cancel()
	_, err = client.OpenContext(ctx, option, client.Config{})
	require.ErrorIs(t, err, client.ErrUnreachable)
	_, err = client.OpenContext(ctx, option, client.Config{})
	require.ErrorIs(t, err, client.ErrTimeout, "it had ended before")
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err = client.OpenContext(ctx, option, client.Config{})
	require.ErrorIs(t, err, context.Canceled)

	for _, none := range [][]string{nil, {""}, {"127.0.0.1"}, {"redis://127.0.0.1:1"}, {"redis://localhost"},
		{"::1"}, {"[::1]"}, {"127.0.0.1:99999"}, {"a:1,b:2"}} {
		_, err = client.Open(rueidis.ClientOption{InitAddress: none}, client.Config{})
		require.ErrorIs(t, err, client.ErrArgument, none)
	}

	old, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}, AlwaysRESP2: true}, client.Config{})
	require.NoError(t, err)
	old.Close()

	option.InitAddress = []string{address}
	ctx, cancel = context.WithCancel(t.Context())
	c, err := client.OpenContext(ctx, option, client.Config{})
	require.NoError(t, err)
	defer c.Close()
	cancel()
	require.NoError(t, c.Do(t.Context(), t.Name(), func(context.Context) error { return nil }))
}
