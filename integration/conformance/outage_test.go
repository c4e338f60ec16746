// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// What a full server takes is enough to be handed a lock that is not renewed.
func TestAHandOffAtAFullServer(t *testing.T) {
	e := own(t)
	holder, c := e.open(client.Config{Lease: testbed.Long}), e.open(client.Config{Lease: testbed.Long})
	l := e.Take(holder, "a")
	waiting := e.Acquire(e.Ctx, c, "a", client.WithoutRenewal())
	e.Line(holder, "a", 1)
	e.admin("CONFIG", "SET", "maxmemory", "1")
	e.Release(l)
	l = e.Locked(waiting).Lock
	require.Greater(t, l.Remaining(), testbed.Long/2, "confirmed, for a whole lease")
	e.Release(l)
}
