package failure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// A slot moves to a node without the library. With AutoLoad calls go on, and so do held locks and
// lines. Without, the error names the command, while the slot is on its way and
// afterwards; a held lock goes on if the library comes within its lease.
func TestASlotMovesToANodeWithoutTheLibrary(t *testing.T) {
	for name, autoLoad := range map[string]bool{"AutoLoad": true, "by hand": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := lay(t, server.Cluster(t, server.Owned()))
			const name = "{tag}held"
			slot, source := cluster.Slot(prefix+name), b.owning(name)
			target := b.D.Nodes()[(int(slot)*3/cluster.Slots+1)%3]
			m := newMover(b)
			m.at(target, "FUNCTION", "FLUSH")
			cfg := client.Config{Lease: 20 * time.Second, RenewEvery: 100 * time.Millisecond, AutoLoad: autoLoad}
			c := b.Connect(b.D.ClientOption(), cfg)
			l := b.Take(c, name)
			next := b.Acquire(b.Ctx, b.Connect(b.D.ClientOption(), client.Config{AutoLoad: true}), name)
			b.Line(c, name, 1)

			take := func(name string, opts ...client.Option) {
				t.Helper()
				free, err := c.TryAcquire(b.Ctx, name, opts...)
				if autoLoad {
					require.NoError(t, err)
					b.Release(free)
					return
				}
				require.ErrorIs(t, err, client.ErrLibrary)
				require.Contains(t, err.Error(), "run: holdfast load --addr ")
			}
			m.begin(slot, source, target)
			take("{tag}on its way")
			take("{tag}on its way", client.WithReplicas(1, testbed.Within))
			m.finish(slot, source, target)
			take("{tag}there")
			take("{tag}there", client.WithReplicas(1, testbed.Within))
			if !autoLoad {
				require.NoError(t, l.Context().Err(), "the lease stands")
				b.D.Load(t)
			}
			b.renewed(name, 3)
			require.NoError(t, l.Context().Err())
			b.Line(c, name, 1)
			b.subscribed(t, target, name)
			b.Release(l)
			o := b.Locked(next)
			require.Greater(t, o.Lock.Fence(), l.Fence())
			b.Release(o.Lock)
		})
	}
}

// AutoLoad loads the library on every primary, and a replica that is dead or silent does not keep it
// from that.
func TestAutoLoadBesideALostReplica(t *testing.T) {
	for name, lose := range map[string]func(*server.Node) error{
		"dead": (*server.Node).Kill, "silent": (*server.Node).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := lay(t, server.Cluster(t, server.Owned()))
			c := b.Connect(b.D.ClientOption(), client.Config{Lease: testbed.Long, AutoLoad: true})
			l := b.Take(c, "held")
			require.NoError(t, lose(b.D.Nodes()[3]))
			for range 3 {
				for _, n := range b.D.Nodes()[:3] {
					_, err := n.Do(b.Ctx, "FUNCTION", "FLUSH")
					require.NoError(t, err)
				}
				b.Eventually("renewed", func() bool { return l.Renew(b.Ctx) == nil })
				for _, n := range b.D.Nodes()[:3] {
					b.Eventually("loaded", func() bool {
						loaded, err := n.Do(b.Ctx, "FUNCTION", "LIST")
						require.NoError(t, err)
						list, err := loaded.ToArray()
						require.NoError(t, err)
						return len(list) == 1
					})
				}
				b.Release(b.Take(c, "another"))
			}
			b.Release(l)
		})
	}
}
