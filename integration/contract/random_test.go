// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/seeded"
)

func randomBytes(seed uint64, n int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	data := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(data) // never fails
	return data
}

func join(lines []string) string { return "  " + strings.Join(lines, "\n  ") }

// Thousands of random calls do to the server what they do to the model, and reply the same over both versions
// of the protocol. HOLDFAST_SEED repeats a run.
func TestRandomCalls(t *testing.T) {
	seed := seeded.Setting(t, "HOLDFAST_SEED", uint64(time.Now().UnixNano()), seeded.Number)
	t.Logf("HOLDFAST_SEED=%d", seed)
	each(t, func(t *testing.T, b *bed) {
		for _, resp := range []int{2, 3} {
			its := *b
			its.c, its.run = b.dial(resp), fmt.Sprint(b.run, "-", resp)
			p := random(t, &its, seed+uint64(resp), 30_000)
			if p.played < 3000 {
				t.Errorf("only %d calls in 30000 bytes", p.played)
			}
			t.Logf("%d calls", p.played)
		}
	})
}
