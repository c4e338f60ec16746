// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// crew is clients at work while something happens to their server: locks that are held and renewed,
// locks that others wait for, and locks that come and go.
type crew struct {
	*bed
	held  []*client.Lock
	heads map[string]*client.Lock // of the lines
	late  func() time.Duration    // how late plain timers were until its first call

	stop           context.CancelFunc
	coming, served sync.WaitGroup

	mu     sync.Mutex
	turns  int     // locks that were taken and given back
	failed []error // of these
	tokens map[string][]int64
	errs   map[string]error
}

// waiters are in each line, in the same order.
const waiters = 3

// crew sets clients to work: ten locks are held, and ten are waited for.
func (b *bed) crew(connect func() *client.Client) *crew {
	b.TB.Helper()
	var held, lined []string
	for i := range 10 {
		held, lined = append(held, fmt.Sprint("held ", i)), append(lined, fmt.Sprint("lined ", i))
	}
	return b.crewOf(connect, held, lined, func(worker, turn int) string { return fmt.Sprintf("load %d %d", worker, turn%100) })
}

// crewOf sets clients to work on locks of these names. No two workers take a lock of one name.
func (b *bed) crewOf(connect func() *client.Client, held, lined []string, name func(worker, turn int) string) *crew {
	b.TB.Helper()
	ctx, cancel := context.WithCancel(b.Ctx)
	w := &crew{bed: b, stop: cancel, late: sync.OnceValue(testbed.Late()),
		heads: map[string]*client.Lock{}, tokens: map[string][]int64{}, errs: map[string]error{}}
	b.TB.Cleanup(func() { w.late() })
	holder := connect()
	for _, name := range held {
		w.held = append(w.held, b.Take(holder, name))
	}
	for _, name := range lined {
		w.heads[name], w.tokens[name] = b.Take(holder, name), make([]int64, waiters)
	}
	for place := range waiters {
		c := connect()
		for _, name := range lined {
			w.served.Go(func() { w.wait(c, name, place) })
		}
		for _, name := range lined {
			b.Line(holder, name, place+1)
		}
	}
	b.TB.Cleanup(w.end)
	for worker := range 2 {
		c := connect()
		w.coming.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				w.turn(c, name(worker, turn), turn)
			}
		})
	}
	return w
}

// wait waits for one turn in a line, and ends it at once.
func (w *crew) wait(c *client.Client, name string, place int) {
	var ran time.Time
	err := c.Do(w.Ctx, name, func(ctx context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.tokens[name][place] = client.Fence(ctx)
		ran = time.Now()
		return nil
	})
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs[name] = fmt.Errorf("number %d of %s, %v after its turn: %w", place, name, time.Since(ran), err)
	}
}

// turn takes a lock and gives it back, by one of the ways in which users do. It is never ended in
// the middle: what is given up would say nothing.
func (w *crew) turn(c *client.Client, name string, turn int) {
	acquire := c.Acquire
	if turn%2 == 0 {
		acquire = c.TryAcquire
	}
	lock, err := acquire(w.Ctx, name)
	if err == nil {
		err = lock.Release(w.Ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed = append(w.failed, err)
	} else {
		w.turns++
	}
}

// release ends the first turn in a line, of the one whom all others wait for.
func (w *crew) release(name string) error { return w.heads[name].Release(w.Ctx) }

// end ends the locks that come and go.
func (w *crew) end() {
	w.stop()
	w.coming.Wait()
}

// check ends the work. It asserts that no lock was lost, that everybody in line has a turn, and that at most so
// many calls failed, and by an error of that kind. It returns what became of the places in line.
func (w *crew) check(t *testing.T, most int, kind error) places {
	t.Helper()
	w.end()
	t.Logf("%d locks taken and given back meanwhile, %d failed", w.turns, len(w.failed))
	assert.Positive(t, w.turns)
	assert.LessOrEqual(t, len(w.failed), most, "%v", w.failed)
	for _, err := range w.failed {
		assert.ErrorIs(t, err, kind)
	}
	for _, l := range w.held {
		assert.NoError(t, l.Context().Err(), "%v", context.Cause(l.Context()))
		assert.NoError(t, l.Renew(w.Ctx))
		assert.NoError(t, l.Release(w.Ctx))
	}
	var names []string
	for name, l := range w.heads {
		names = append(names, name)
		if !errors.Is(context.Cause(l.Context()), client.ErrReleased) {
			require.NoError(t, w.release(name))
		}
	}
	w.served.Wait()
	p := w.places(t, names)
	t.Logf("places in line: %+v", p)
	return p
}

// places is what became of the places in lines.
type places struct {
	turns, lost, farthest int
}

// places asserts that all were served, above the token of the first holder. It returns how many were
// served after somebody who had joined later.
func (w *crew) places(t *testing.T, names []string) (p places) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		// A turn begins with a lease of two seconds, which a machine can sleep through that is too busy.
		if err := w.errs[name]; w.late() > time.Second && errors.Is(err, client.ErrLost) {
			t.Logf("timers were late by %v, and a lock was lost: %v", w.late(), err)
		} else {
			assert.NoError(t, err)
		}
		tokens := w.tokens[name]
		require.NotContains(t, tokens, int64(0), "somebody was passed over for good in the line of %s", name)
		require.Greater(t, slices.Min(tokens), w.heads[name].Fence())
		for place, token := range tokens {
			p.turns++
			before := 0
			for _, other := range tokens[place+1:] {
				if other < token {
					before++
				}
			}
			if before > 0 && w.late() <= time.Second { // nor was anybody skipped for that
				p.lost++
				p.farthest = max(p.farthest, before)
			}
		}
	}
	return p
}
