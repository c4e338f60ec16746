// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/stretchr/testify/require"
)

// The end of an outage that crosses with its beginning may be queued before it. What is told last is how it
// is.
func TestAnOutageAndItsEndCross(t *testing.T) {
	var told []bool
	fails := false
	e := &events{log: slog.New(slog.DiscardHandler), failing: func() bool { return fails },
		observer: &Observer{Connection: func(c Connection) { told = append(told, c.Err != nil) }}}
	gone := errors.New("gone")
	e.outage.Store(true) // unanswered has come so far
	e.answered()
	e.post(false, func() { e.connection(1, gone) })
	e.unanswered(1, gone)
	e.close(t.Context())
	require.Equal(t, []bool{true}, told)
	fails = true // of another node, or what it may not write
	e.answered()
	e.close(t.Context())
	require.Equal(t, []bool{true}, told)
	fails = false
	e.answered()
	e.close(t.Context())
	require.Equal(t, []bool{true, false}, told)
}

// A log that takes nothing more holds up no release.
func TestALogThatBlocks(t *testing.T) {
	d := server.Single(t, server.Owned())
	pipe, log := io.Pipe()
	c, err := Open(d.ClientOption(), Config{AutoLoad: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
	require.NoError(t, err)
	defer c.Close()
	defer pipe.Close()
	defer func() { require.NoError(t, d.Nodes()[0].Resume()) }()
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended <- c.Do(ctx, "a", func(context.Context) error { return d.Nodes()[0].Pause() })
	}()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		require.Fail(t, "Do waits for the log")
	}
}
