// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

// since is what a node says of its memory.
func since(t *testing.T, n *server.Node, words ...string) string {
	t.Helper()
	reply, err := n.Do(ctx, append([]string{"FCALL", functions.Memory}, words...)...)
	require.NoError(t, err)
	said, err := reply.AsStrSlice()
	require.NoError(t, err)
	return said[2]
}

// Where a call without a key is refused, a primary is asked with a key that is its own.
func TestAMemoryIsCarriedOverWhereCallsNeedAKey(t *testing.T) {
	source := strings.Replace(functions.Source, "holdfast_memory, 0,", "holdfast_memory, 1,", 1)
	require.NotEqual(t, functions.Source, source)
	d := server.Cluster(t, server.Owned())
	client, opt := connect(t, d)
	opt.Source = source
	_, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	before := map[string]string{}
	keys := map[string]string{}
	for _, n := range d.Nodes()[:3] {
		for _, key := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
			if _, err := n.Do(ctx, "GET", key); rueidis.IsRedisNil(err) {
				keys[n.Addr] = key
			}
		}
		require.Contains(t, keys, n.Addr)
		before[n.Addr] = since(t, n, "1", keys[n.Addr])
	}
	opt.Source += "-- another\n"
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	for _, r := range report.Nodes {
		require.Empty(t, r.Detail)
	}
	for _, n := range d.Nodes()[:3] {
		require.Equal(t, before[n.Addr], since(t, n, "1", keys[n.Addr]))
	}
}

// A user who may load and no more loses the memory, and is told. One without MULTI carries it over.
func TestAMemoryThatIsLostIsTold(t *testing.T) {
	for more, told := range map[string]string{"": "NOPERM", " +fcall +time +info": "", " +multi +exec +fcall +time +info": ""} {
		rights := "user loads on >pw +ping +role +function|list +function|load +function|delete" + more
		d := server.Single(t, server.Owned(), server.WithACL(rights))
		d.Load(t)
		before := since(t, d.Nodes()[0], "0")
		option := d.ClientOption()
		option.Username, option.Password = "loads", "pw"
		option.DisableCache, option.ForceSingleClient, option.PipelineMultiplex = true, true, -1
		report, err := loader.Load(ctx, open(t, option), loader.Options{Source: functions.Source + "-- another\n"})
		require.NoError(t, err)
		require.Equal(t, []loader.Action{loader.Replaced}, actions(report))
		require.Contains(t, report.Nodes[0].Detail, told)
		require.Equal(t, told != "", strings.Contains(report.Nodes[0].Detail, "memory was not carried over"))
		require.Equal(t, told == "", before == since(t, d.Nodes()[0], "0"))
	}
}

// A later library may say more of its memory. The one of before takes back what it knows.
func TestAMemoryIsCarriedOverARollBack(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	later := strings.Replace(source("2.99.0"), "{ process, history, digits(born) }", "{ process, history, digits(born), 'more' }", 1)
	put(t, d.Nodes()[0], later)
	before := since(t, d.Nodes()[0], "0")
	opt.Force = true
	report, err := loader.Load(ctx, client, opt)
	require.NoError(t, err)
	require.Equal(t, []loader.Action{loader.Downgraded}, actions(report))
	require.Empty(t, report.Nodes[0].Detail)
	require.Equal(t, before, since(t, d.Nodes()[0], "0"))
}

// Between the library and its memory no call finds a server that remembers nothing.
func TestNoGuardedLockWaitsForAnUpgrade(t *testing.T) {
	d := server.Single(t, server.Owned())
	client, opt := connect(t, d)
	d.Load(t)
	var names, refusals atomic.Int64
	granted := func() bool {
		key := "lock:" + strconv.FormatInt(names.Add(1), 10)
		reply, err := d.Nodes()[0].Do(ctx, "FCALL", functions.Acquire, "1", key, "owner", "500", "GUARD", "500")
		return err == nil && reply.IsInt64() // the token
	}
	require.Eventually(t, granted, soon, pollEvery)
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if !granted() {
					refusals.Add(1)
				}
			}
		})
	}
	opt.Force = true
	for i := range 20 {
		opt.Source = source([]string{older, functions.Version}[i%2])
		report, err := loader.Load(ctx, client, opt)
		require.NoError(t, err)
		require.True(t, report.Changed())
	}
	close(done)
	all.Wait()
	require.Zero(t, refusals.Load(), "of %d", names.Load())
}
