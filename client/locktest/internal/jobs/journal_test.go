package jobs

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// journal is a log that keeps its lines.
type journal struct {
	slog.Handler
	mu    sync.Mutex
	lines []slog.Record
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, r)
	return nil
}

// attribute is one of a line, as text.
func attribute(r slog.Record, key string) (value string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == key {
			value = a.Value.String()
		}
		return true
	})
	return value
}

// told returns the lines. Each says what happened, what that means for the locks, and what to do. A
// lock's context ends before the log is told why.
func (j *journal) told(t *testing.T, what ...string) []slog.Record {
	t.Helper()
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	require.Len(t, j.lines, len(what))
	for i, r := range j.lines {
		require.True(t, strings.HasPrefix(r.Message, "holdfast: "+what[i]+"; "), r.Message)
		require.GreaterOrEqual(t, strings.Count(r.Message, "; ")+strings.Count(r.Message, ": "), 3, r.Message)
	}
	return j.lines
}

func TestTheLogOfAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var j journal
		c := s.Client(client.Config{Lease: 3 * time.Second, Logger: slog.New(&j)})
		l, err := c.Acquire(ctx, "x")
		require.NoError(t, err)
		s.Cut()
		<-l.Context().Done()
		s.Restore()
		require.ErrorIs(t, l.Release(ctx), client.ErrExpired)
		_, err = c.Inspect(ctx, "x")
		require.NoError(t, err)
		lines := j.told(t, "the server does not renew locks", "lock lost", "the server answers again")
		require.Contains(t, attribute(lines[0], "error"), client.ErrUnreachable.Error())
		require.Equal(t, "x", attribute(lines[1], "lock"))
		require.Equal(t, client.ErrExpired.Error(), attribute(lines[1], "cause"))
	})
}

// The work's time is over, and the lock is still its own: that is told as what it is.
func TestTheLogOfALimit(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var j journal
		c := s.Client(client.Config{Logger: slog.New(&j)})
		l, err := c.Acquire(ctx, "x", client.WithMaxHold(time.Second, 0))
		require.NoError(t, err)
		<-l.Context().Done()
		s.HeldBy(l)
		require.ErrorIs(t, l.Release(ctx), client.ErrMaxHold)
		lines := j.told(t, "lock ended by its limit")
		require.Equal(t, client.ErrMaxHold.Error(), attribute(lines[0], "cause"))
	})
}
