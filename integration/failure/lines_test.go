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
)

// lines are locks that are held and waited for, by the same clients in the same order.
type lines struct {
	*bed
	names  []string
	heads  map[string]*client.Lock
	served sync.WaitGroup
	late   time.Duration // how late plain timers were, if anybody looked

	mu     sync.Mutex
	tokens map[string][]int64 // by place in the line; 0: not served yet
	errs   map[string]error
}

// line lets each client join each line, one client after the other.
func (b *bed) line(holder *client.Client, waiters []*client.Client, names []string) *lines {
	b.TB.Helper()
	ls := &lines{bed: b, names: names, heads: map[string]*client.Lock{}, tokens: map[string][]int64{}, errs: map[string]error{}}
	for _, name := range names {
		ls.heads[name] = b.Take(holder, name)
		ls.tokens[name] = make([]int64, len(waiters))
	}
	for place, c := range waiters {
		for _, name := range names {
			ls.served.Go(func() { ls.wait(c, name, place) })
		}
		for _, name := range names {
			b.Line(holder, name, place+1)
		}
	}
	return ls
}

// wait waits for one turn, and ends it at once.
func (ls *lines) wait(c *client.Client, name string, place int) {
	var ran time.Time
	err := c.Do(ls.Ctx, name, func(ctx context.Context) error {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.tokens[name][place] = client.Fence(ctx)
		ran = time.Now()
		return nil
	})
	if err != nil {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		ls.errs[name] = fmt.Errorf("number %d of %s, %v after its turn: %w", place, name, time.Since(ran), err)
	}
}

// release ends the first turn, of the one whom all others wait for.
func (ls *lines) release(name string) error { return ls.heads[name].Release(ls.Ctx) }

// places is what became of the places in lines.
type places struct {
	turns, lost, farthest int
}

// check asserts that all were served, above the token of the first holder. It returns how many were
// served after somebody who had joined later.
func (ls *lines) check(t *testing.T, names []string) (p places) {
	t.Helper()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, name := range names {
		// A turn begins with a lease of two seconds, which a machine can sleep through that is too busy.
		if err := ls.errs[name]; ls.late > time.Second && errors.Is(err, client.ErrLost) {
			t.Logf("timers were late by %v, and a lock was lost: %v", ls.late, err)
		} else {
			assert.NoError(t, err)
		}
		tokens := ls.tokens[name]
		require.NotContains(t, tokens, int64(0), "somebody was passed over for good in the line of %s", name)
		require.Greater(t, slices.Min(tokens), ls.heads[name].Fence())
		for place, token := range tokens {
			p.turns++
			before := 0
			for _, other := range tokens[place+1:] {
				if other < token {
					before++
				}
			}
			if before > 0 {
				p.lost++
				p.farthest = max(p.farthest, before)
			}
		}
	}
	return p
}
