// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// A line says what happened, what that means for the locks, and what to do. An outage is one line when it
// begins, one for each lock that is lost, and one when it is over.
func TestTheLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cause error
		ends  func(s *locktest.Server)
		opt   client.Option
		want  []string // what each line begins with
	}{
		{client.ErrExpired, func(s *locktest.Server) { s.Cut() }, client.WithOptions(),
			[]string{"the server does not renew locks", "lock lost", "lock lost", "lock lost", "the server answers again"}},
		// The work's time is over, and the lock is still its own: that is told as what it is.
		{client.ErrMaxHold, func(*locktest.Server) {}, client.WithMaxHold(time.Second, 0), []string{"lock ended by its limit", "lock ended by its limit", "lock ended by its limit"}},
	} {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			var log bytes.Buffer
			cl := s.Client(client.Config{Lease: 3 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			var locks []*client.Lock
			for _, name := range []string{"x1", "x2", "x3"} {
				locks = append(locks, holding(t, cl, name, c.opt))
			}
			c.ends(s)
			for _, l := range locks {
				<-l.Context().Done()
			}
			time.Sleep(5 * time.Second) // the work overruns the lease, too
			s.Restore()
			for _, l := range locks {
				require.ErrorIs(t, l.Release(ctx), c.cause)
			}
			_, err := cl.Inspect(ctx, "x")
			require.NoError(t, err)
			synctest.Wait() // a lock's context ends before the log is told why
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			require.Len(t, lines, len(c.want), log.String())
			for i, line := range lines {
				require.Contains(t, line, `msg="holdfast: `+c.want[i]+"; ")
				message, _, _ := strings.Cut(line[strings.Index(line, "msg="):], `" `)
				require.GreaterOrEqual(t, strings.Count(message, "; ")+strings.Count(message, ": "), 3, line)
				if strings.HasPrefix(c.want[i], "lock ") {
					require.Contains(t, line, "lock=x")
					require.Contains(t, line, c.cause.Error())
				}
			}
		})
	}
}

// A server that refuses to renew has not come back, however often it says so.
func TestARefusalEndsNoOutage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var log bytes.Buffer
		c := s.Client(client.Config{Lease: 3 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		l := holding(t, c, "x")
		require.NoError(t, c.Redis().Do(ctx, c.Redis().B().Arbitrary("FUNCTION", "FLUSH").Build()).Error())
		<-l.Context().Done()
		synctest.Wait()
		require.Contains(t, log.String(), "the server does not renew locks")
		require.NotContains(t, log.String(), "the server answers again", log.String())
	})
}

// The goroutines of a process learn of an outage together, those that stand in line and those that come:
// one after the other, each would take a lease.
func TestAllWhoWaitLearnOfAnOutageTogether(t *testing.T) {
	t.Parallel()
	for _, coming := range []bool{false, true} {
		bubble(t, func(t *testing.T, s *locktest.Server) {
			c := s.Client(client.Config{Lease: 2 * time.Second})
			require.NoError(t, holding(t, c, "x").Release(ctx))
			s.Take("x", time.Hour)
			if coming {
				s.Stop()
			}
			told := make(chan time.Time)
			for range 6 {
				go func() {
					_, err := c.Acquire(ctx, "x")
					require.ErrorIs(t, err, client.ErrUnreachable)
					told <- time.Now()
				}()
			}
			if !coming {
				queued(s, "x", 1)
				s.Stop()
			}
			first, last := <-told, time.Time{}
			for range 5 {
				last = <-told
			}
			require.Less(t, last.Sub(first), 100*time.Millisecond)
		})
	}
}
