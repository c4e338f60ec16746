// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// With its memory full the server refuses what may need more, before it starts, and runs what gives
// back or keeps alive.
func TestFullMemory(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		full := func(on string) { t.Helper(); want(t, b.c.do("CONFIG", "SET", "maxmemory", on), "OK") }
		k, free := b.key("k"), b.key("free")
		fence := b.take(k, "a", long)
		b.wait(k, "b", "", 1)
		b.wait(k, "c", "", 2)
		before := b.c.do("DUMP", k)
		full("1")
		for _, lock := range []string{k, free} {
			for _, call := range [][]string{
				{functions.Acquire, "a", long}, {functions.AcquireReentrant, "a", long, "h"}, {functions.Wait, "a", long}, {functions.Wait, "d", long}, {functions.Finish, "a", "v", long},
			} {
				want(t, b.call(call[0], lock, call[1:]...), prefix("OOM "))
			}
		}
		want(t, b.c.do("EXISTS", free), 0)
		want(t, b.c.do("DUMP", k), before)
		want(t, b.call(functions.Inspect, k), []any{1, "a", 1, fence, left, 2, functions.WhyHeld})
		want(t, b.call(functions.Renew, k, "a", long), fence)
		want(t, b.call(functions.Release, k, "a"), 1)
		b.expectLock(k, "b", 1, 1)
		want(t, b.call(functions.Renew, k, "b", long), token)
		want(t, b.call(functions.Break, k, "FORGET"), []any{1, "b", token})
		b.expectLock(k, "c", 1, 0)
		want(t, b.call(functions.Leave, k, "c"), 1)
		b.expectFree(k)
		want(t, b.c.do("FCALL", functions.ReadVersion, "0"), functions.Version)
		full("0")
		b.take(k, "d", long)
	}, server.Owned())
}
