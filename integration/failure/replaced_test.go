package failure

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// The library is upgraded and downgraded under load: no call fails, and nothing is lost.
func TestTheLibraryIsReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Single(t, server.Owned(), server.WithFlavour(f)))
		w := b.crew(b.D.ClientOption(), client.Config{Lease: 3 * time.Second, RenewEvery: 200 * time.Millisecond})
		other := strings.Replace(functions.Source, "'"+functions.Version+"'", "'0.0.1'", 1)
		require.NotEqual(t, functions.Source, other)
		replaced := 0
		for began := time.Now(); time.Since(began) < 4*time.Second; replaced++ {
			b.do("FUNCTION", "LOAD", "REPLACE", [...]string{other, functions.Source}[replaced%2])
			if replaced == 100 { // a line goes on meanwhile
				require.NoError(t, w.lines.release(w.lines.names[0]))
				w.lines.names = w.lines.names[1:]
			}
		}
		t.Logf("replaced %d times", replaced)
		w.load.check(t)
		assert.Zero(t, w.check(t).lost)
	})
}

// The library is deleted again and again: with AutoLoad no lock is lost and nobody is stuck. A call
// can fail if the library is deleted twice while it is under way.
func TestTheLibraryIsFlushedUnderLoad(t *testing.T) {
	t.Parallel()
	b := lay(t, server.Single(t, server.Owned()))
	w := b.crew(b.D.ClientOption(), client.Config{Lease: 3 * time.Second, RenewEvery: 200 * time.Millisecond, AutoLoad: true})
	flushed := 0
	for began := time.Now(); time.Since(began) < 8*time.Second; flushed++ {
		b.do("FUNCTION", "FLUSH")
		b.Eventually("it is loaded again", func() bool {
			libraries, err := b.Redis.Do(b.Ctx, b.Redis.B().FunctionList().Build()).ToArray()
			return err == nil && len(libraries) == 1
		})
		<-time.After(1500 * time.Millisecond) // the pace of it: the client loads once a second at most
	}
	w.load.end()
	t.Logf("deleted %d times; %d locks taken and given back, failed: %v", flushed, w.load.turns.Load(), w.load.failed)
	for _, err := range w.load.failed {
		assert.ErrorIs(t, err, client.ErrLibrary)
	}
	assert.Less(t, len(w.load.failed), flushed/4+1)
	assert.Zero(t, w.check(t).lost)
}
