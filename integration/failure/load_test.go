package failure

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/holdfast-go/holdfast/client"
)

// load is locks that are taken and given back all the time. None of its calls may fail.
type load struct {
	bed     *bed
	cancel  context.CancelFunc
	working sync.WaitGroup
	turns   atomic.Int64

	mu     sync.Mutex
	failed []error
}

// load starts a worker for each client. Each takes the names one after the other, which no other
// worker takes.
func (b *bed) load(clients []*client.Client, names func(worker, turn int) string) *load {
	b.TB.Helper()
	ctx, cancel := context.WithCancel(b.Ctx)
	l := &load{bed: b, cancel: cancel}
	b.TB.Cleanup(l.end)
	for i, c := range clients {
		l.working.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				l.turn(c, names(i, turn), turn)
			}
		})
	}
	return l
}

// turn takes a lock and gives it back, by one of the ways in which users do. It is never ended in
// the middle: what is given up would say nothing.
func (l *load) turn(c *client.Client, name string, turn int) {
	acquire := c.Acquire
	if turn%2 == 0 {
		acquire = c.TryAcquire
	}
	lock, err := acquire(l.bed.Ctx, name)
	if err == nil {
		err = lock.Release(l.bed.Ctx)
	}
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = append(l.failed, err)
		return
	}
	l.turns.Add(1)
}

func (l *load) end() {
	l.cancel()
	l.working.Wait()
}

// check ends the load and asserts that no call failed.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%d locks taken and given back meanwhile, %d failed", l.turns.Load(), len(l.failed))
	for _, err := range l.failed[:min(5, len(l.failed))] {
		assert.NoError(t, err)
	}
	assert.Positive(t, l.turns.Load())
}
