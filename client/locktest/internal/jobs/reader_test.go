// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// A server that is gone for a moment, with its data, keeps the value when it is back within the lease.
func TestReaderValueOverARestart(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(s *locktest.Server, c *client.Client){
		"silent": func(s *locktest.Server, c *client.Client) {
			s.Cut(c)
			time.AfterFunc(time.Second, func() { s.Restore(c) })
		},
		"restarted": func(s *locktest.Server, c *client.Client) {
			s.Stop()
			time.AfterFunc(time.Second, s.Start)
			time.Sleep(10 * time.Millisecond) // the client has noticed
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *locktest.Server) {
				a, b := s.Client(client.Config{}), s.Client(client.Config{})
				ran := 0
				get := func(c *client.Client, meanwhile func()) string {
					value, err := c.OnceValue(ctx, "token", time.Hour, func(context.Context) ([]byte, error) {
						ran++
						meanwhile()
						return fmt.Append(nil, ran), nil
					})
					require.NoError(t, err)
					return string(value)
				}
				require.Equal(t, "1", get(a, func() { trouble(s, a) }))
				require.Equal(t, "1", get(b, func() {}), "the lease of 30 s was far from over")
			})
		})
	}
}

// A renewal by hand that waits for another one does nothing to the lock of a goroutine that it was passed on to meanwhile.
func TestReaderARenewalCrossesAPass(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, other := s.Client(client.Config{}), s.Client(client.Config{})
		first := holding(t, other, "x")
		got := make(chan *client.Lock)
		for range 2 {
			go func() {
				l, err := c.Acquire(ctx, "x")
				require.NoError(t, err)
				got <- l
			}()
			time.Sleep(time.Second)
		}
		time.Sleep(5 * time.Second) // it is asked for a run by now
		require.NoError(t, first.Release(ctx))
		a := <-got
		s.Pause()
		renewed, shortened := make(chan error, 1), make(chan error, 1)
		go func() { renewed <- a.Renew(ctx) }()
		time.Sleep(300 * time.Microsecond)
		go func() { shortened <- a.RenewFor(ctx, 50*time.Millisecond) }()
		time.Sleep(300 * time.Microsecond)
		require.NoError(t, a.Release(ctx))
		b := <-got
		require.Equal(t, a.Fence()+1, b.Fence(), "it was passed on")
		s.Resume()
		<-renewed
		require.ErrorIs(t, <-shortened, client.ErrNotHeld)
		require.Greater(t, b.Remaining(), time.Second)
		require.NoError(t, b.Release(ctx))
	})
}
