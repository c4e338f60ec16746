// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/holdfast-go/holdfast/functions"
)

// step is one call and what it must reply.
type step struct {
	function string
	args     []string
	reply    any
}

func (c *conn) run(s step, key string) any {
	c.tb.Helper()
	return c.fcall(s.function, key, s.args...)
}

// A repeat writes, so that a WAIT after it covers the first call too: each one moves the
// replication offset.
func TestRepeatsWrite(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		for _, call := range [][]string{
			{functions.Acquire, "a", long}, {functions.Wait, "a", long}, {functions.Renew, "a", long}, {functions.Renew, "a", long, "FENCE", ""},
			{functions.Wait, "b", long}, {functions.Wait, "c", long, "HOLD", "h"},
		} {
			if len(call) == 5 && call[4] == "" {
				call[4] = b.c.do("HGET", k, "fence").(string)
			}
			b.call(call[0], k, call[1:]...)
			before := b.dirty()
			b.call(call[0], k, call[1:]...)
			if b.dirty() == before {
				t.Errorf("the repeat of %v wrote nothing", call)
			}
		}
	})
}
