// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

var errMine = errors.New("of the caller's own")

func TestNameKeepsPartsApart(t *testing.T) {
	require.Equal(t, "order:42", client.Name("order", 42))
	require.NotEqual(t, client.Name("a:b", "c"), client.Name("a", "b:c"))
	require.NotEqual(t, client.Name("a%3Ab"), client.Name("a:b"))
}

func TestDoReportsALostLock(t *testing.T) {
	each(t, func(t *testing.T, e *env) {
		c, other := e.open(client.Config{Lease: testbed.Long, RenewEvery: 100 * time.Millisecond}), e.open(client.Config{})
		remove := func(name string) { require.NoError(t, e.Do(name, "DEL").Error()) }
		for name, end := range map[string]func(ctx context.Context, name string){
			"by its renewal":  func(ctx context.Context, name string) { remove(name); e.Ended(ctx) },
			"by its release":  func(_ context.Context, name string) { remove(name) },
			"which is broken": func(_ context.Context, name string) { _, _ = other.Break(e.Ctx, name, "for a test") },
			"which is another's": func(_ context.Context, name string) {
				remove(name)
				e.Take(other, name, client.WithFreshAnswer())
			},
		} {
			for _, own := range []error{nil, errMine} {
				v, err := client.TryValue(e.Ctx, c, name, func(ctx context.Context) (string, error) {
					end(ctx, name)
					return "done anyway", own
				}, client.WithFreshAnswer())
				require.Equal(t, "done anyway", v)
				if own != nil {
					require.True(t, err == own, "fn's error is untouched")
				} else {
					only(t, client.ErrLost, err, name)
					require.Equal(t, name, as[*client.LostError](e, err).Name)
				}
				remove(name)
			}
		}
	})
}
