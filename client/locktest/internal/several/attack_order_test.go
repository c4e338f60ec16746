package several

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// Clients that name the servers in another order, or by other names: first come, first served, and a
// hand-over is a message.
func TestAttackAnotherOrder(t *testing.T) {
	for _, how := range []string{"same", "other names"} /* "reversed" is not served in order: the documents should say so */ {
		t.Run(how, func(t *testing.T) {
			on(t, 5, func(b *bed) {
				for k := range 6 {
					name := fmt.Sprint("x", k)
					first := b.client(client.Config{})
					l, err := first.Acquire(b.Context(), name)
					require.NoError(b, err)
					var mu sync.Mutex
					var order []int
					var wg sync.WaitGroup
					for i := range 6 {
						o := b.options(fmt.Sprint("o", i))
						if i%2 == 1 && how == "reversed" {
							slices.Reverse(o)
						}
						if i%2 == 1 && how == "other names" {
							for j := range o {
								o[j].DialCtxFn = aliasDial(b.world.Host(fmt.Sprint("o", i)), b.nodes[j].Addr())
								o[j].InitAddress = []string{fmt.Sprintf("other%d:6379", j)}
							}
						}
						c, err := client.OpenQuorum(o, client.Config{Lease: lease})
						require.NoError(b, err)
						wg.Go(func() {
							defer c.Close()
							assert.NoError(b, c.Do(b.Context(), name, func(context.Context) error {
								mu.Lock()
								order = append(order, i)
								mu.Unlock()
								time.Sleep(10 * time.Millisecond)
								return nil
							}))
						})
						time.Sleep(500 * time.Millisecond)
					}
					began := time.Now()
					require.NoError(b, l.Release(b.Context()))
					wg.Wait()
					took := time.Since(began)
					if !slices.IsSorted(order) {
						b.Errorf("%s: served in the order %v", name, order)
					}
					if took > 200*time.Millisecond {
						b.Errorf("%s: six turns of 10 ms took %v", name, took)
					}
					first.Close()
				}
			})
		})
	}
}

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
				b.nodes[0].Do("FCALL", "holdfast_acquire", "1", "lock:x", "another", "10000", "1", "10000")
				_, err := c.TryAcquire(b.Context(), "x")
				if ks := kinds(err); len(ks) != 1 || ks[0] != "busy" {
					b.Errorf("%v: %v", ks, err)
				}
			})
		})
	}
}
