package failure

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// crew is clients at work while something happens to their server: locks that are held and renewed,
// locks that others wait for, and locks that come and go.
type crew struct {
	*bed
	held  []*client.Lock
	lines *lines
	load  *load
}

// crew sets clients to work that are made by the option and the settings.
func (b *bed) crew(option rueidis.ClientOption, cfg client.Config) *crew {
	b.TB.Helper()
	connect := func() *client.Client { return b.Connect(option, cfg) }
	holder := connect()
	w := &crew{bed: b}
	var lined []string
	for i := range 10 {
		w.held = append(w.held, b.Take(holder, fmt.Sprintf("held %d", i)))
		lined = append(lined, fmt.Sprintf("lined %d", i))
	}
	w.lines = b.line(holder, []*client.Client{connect(), connect(), connect()}, lined)
	w.load = b.load([]*client.Client{connect(), connect()}, func(worker, turn int) string {
		return fmt.Sprintf("load %d %d", worker, turn%100)
	})
	return w
}

// check ends the work. It asserts that no lock was lost, and that everybody in line has a turn. It
// returns what became of the places in line.
func (w *crew) check(t *testing.T) places {
	t.Helper()
	w.load.end()
	for _, l := range w.held {
		assert.NoError(t, l.Context().Err(), "%v", context.Cause(l.Context()))
		assert.NoError(t, l.Renew(w.Ctx))
		assert.NoError(t, l.Release(w.Ctx))
	}
	for _, name := range w.lines.names {
		require.NoError(t, w.lines.release(name))
	}
	w.lines.served.Wait()
	p := w.lines.check(t, w.lines.names)
	t.Logf("places in line: %+v", p)
	return p
}
