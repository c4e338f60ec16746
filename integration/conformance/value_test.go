// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// One makes the value that all goroutines of all processes wait for. Who comes late has it by one command, and
// then from memory, until it is broken and somebody asks for a fresh one.
func TestOnceValueIsMadeOnce(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		ready, made := make(chan struct{}), atomic.Int32{}
		get := func(c *client.Client, opts ...client.Option) string {
			value, err := c.OnceValue(e.Ctx, "v", time.Hour, func(context.Context) ([]byte, error) {
				<-ready
				return fmt.Append(nil, "value ", made.Add(1)), nil
			}, opts...)
			require.NoError(t, err)
			return string(value)
		}
		fleet := []*client.Client{e.open(client.Config{}), e.open(client.Config{}), e.open(client.Config{})}
		var work sync.WaitGroup
		for i := range 30 {
			work.Go(func() { require.Equal(t, "value 1", get(fleet[i%3])) })
		}
		e.Line(fleet[0], "v", 2)
		close(ready)
		work.Wait()
		require.Zero(t, e.inspect(fleet[0], "v").Waiters)

		late := e.open(client.Config{})
		e.Release(e.Take(late, "warm"))
		before, began := e.calls(), time.Now()
		for range 3 {
			require.Equal(t, "value 1", get(late))
		}
		if n := e.calls(); time.Since(began) < 900*time.Millisecond { // memory is believed for a second
			require.Equal(t, before+1, n)
		}

		_, err := late.Break(e.Ctx, "v", "the key was stolen")
		require.NoError(t, err)
		require.Equal(t, "value 1", get(late))
		require.Equal(t, "value 2", get(late, client.WithFreshAnswer()))
		require.Equal(t, "value 2", get(fleet[1], client.WithFreshAnswer()))
	})
}
