package several

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// One clock of three is wrong by 70 s, and one of the right ones has its vote with another client:
// nobody has a majority of servers that agree, so the lock is busy. ErrInvalid says that to try again
// does not help.
func TestAttackAWrongClockIsInvalid(t *testing.T) {
	for _, off := range []time.Duration{70 * time.Second, -70 * time.Second} {
		t.Run(off.String(), func(t *testing.T) {
			on(t, 3, func(b *bed) {
				b.nodes[1].SetClock(off, 0)
				c := b.client(client.Config{})
				defer c.Close()
				time.Sleep(90 * time.Second)
				b.nodes[0].Do("FCALL", "holdfast_acquire", "1", "lock:x", "another", "10000", "GUARD", "10000")
				_, err := c.TryAcquire(b.Context(), "x")
				if ks := kinds(err); len(ks) != 1 || ks[0] != "busy" {
					b.Errorf("%v: %v", ks, err)
				}
			})
		})
	}
}
