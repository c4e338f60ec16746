// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/wallclock"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/doctor"
)

func TestFaultsOfAReplicatedServerAreFound(t *testing.T) {
	d := server.Replicated(t, 1, server.WithConfig("min-replicas-to-write", "1"), server.Owned())
	p := healthy(t, d)

	back := p.setFor("min-replicas-to-write", "0")
	p.found("min-replicas")
	back()
	back = p.setFor("min-replicas-max-lag", "0")
	p.found("min-replicas-lag")
	back()
	back = p.setFor("min-replicas-to-write", "2")
	p.found("min-replicas-unmet")
	back()

	replica := d.Nodes()[1]
	p.do(replica, "CONFIG", "SET", "min-replicas-to-write", "0")
	require.Equal(t, replica.Addr, p.found("min-replicas-differ")["min-replicas-differ"].Node)
	p.do(replica, "CONFIG", "SET", "min-replicas-to-write", "1")

	p.do(replica, "CONFIG", "SET", "replica-read-only", "no")
	found := p.found("replica-writable")
	require.Equal(t, replica.Addr, found["replica-writable"].Node)
	p.do(replica, "FUNCTION", "FLUSH")
	found = p.found("replica-writable", "library-missing")
	require.Equal(t, replica.Addr, found["library-missing"].Node)
	require.Contains(t, found["library-missing"].Mend, "INFO replication")

	p.do(d.Nodes()[0], "FUNCTION", "LOAD", functions.FencedSource+"\n-- patched")
	found = p.found("replica-writable", "library-missing", "library-differs")
	require.Contains(t, found["library-differs"].What, functions.FencedLibrary)

	// A replica that does not answer hides nothing of the primary.
	p.do(d.Nodes()[0], "LPUSH", "lock:list", "x")
	p.opt.Timeout = 3 * time.Second
	require.NoError(t, replica.Pause())
	found = p.examine()
	require.Contains(t, found, "node-unreachable")
	require.Contains(t, found, "foreign-keys")
	require.Contains(t, found, "library-differs")
	require.NotContains(t, found, "not-checked")
	require.NoError(t, replica.Resume())
}

func TestClocksAreCompared(t *testing.T) {
	library, err := wallclock.Build()
	if err != nil {
		t.Skip(err)
	}
	d := server.Replicated(t, 1, server.WithConfig("min-replicas-to-write", "1"), func(s *server.Spec) { s.Preload = library })
	p := healthy(t, d)
	primary, replica := d.Nodes()[0], d.Nodes()[1]
	ahead := func(n *server.Node, by time.Duration) {
		_, err := n.Put(wallclock.File, wallclock.Ahead(by))
		require.NoError(t, err)
	}
	ahead(replica, 10*time.Second)
	if micros, err := strconv.ParseInt(replica.Info(ctx, "server", "server_time_usec"), 10, 64); err != nil ||
		time.Until(time.UnixMicro(micros)) < 5*time.Second {
		t.Skip("this server does not take its time from a library in front of the C library: is it linked statically?")
	}
	// A server whose clock is stepped takes the other one for silent, until they have connected anew.
	found := p.recovers("clock-leases", "clock-here")
	require.Equal(t, replica.Addr, found["clock-leases"].Node)
	ahead(replica, 2*time.Minute)
	require.Equal(t, doctor.Danger, p.recovers("clock-tokens", "clock-here")["clock-tokens"].Severity)
	ahead(primary, 2*time.Minute)
	p.recovers("clock-here")
}

func TestFaultsBehindSentinelAreFound(t *testing.T) {
	d := server.Sentinel(t, server.WithConfig("min-replicas-to-write", "1"), server.WithConfig("min-replicas-max-lag", "5"))
	slower := func(ms string) {
		for _, s := range d.Sentinels() {
			_, err := s.Do(ctx, "SENTINEL", "SET", d.SentinelMaster, "down-after-milliseconds", ms)
			require.NoError(t, err)
		}
	}
	slower("7000")
	p := healthy(t, d)

	slower("6999")
	p.found("sentinel-lag")
	slower("7000")

	one := d.Sentinels()[0]
	p.do(one, "SENTINEL", "SET", d.SentinelMaster, "quorum", "4")
	require.Equal(t, one.Addr, p.found("sentinel-quorum")["sentinel-quorum"].Node)
	p.do(one, "SENTINEL", "SET", d.SentinelMaster, "quorum", "2")

	p.do(one, "ACL", "SETUSER", "default", "-sentinel|ckquorum")
	require.Contains(t, p.found("not-checked")["not-checked"].What, "SENTINEL CKQUORUM: NOPERM")
	p.do(one, "ACL", "SETUSER", "default", "+sentinel|ckquorum")

	// One that hangs says nothing of the quorum.
	dial, timeout := p.DialSentinel, p.opt.Timeout
	p.opt.Timeout = 3 * time.Second
	p.DialSentinel = func(ctx context.Context, addr string) (rueidis.Client, error) {
		redis, err := dial(ctx, addr)
		if addr == one.Addr {
			require.NoError(t, one.Pause())
		}
		return redis, err
	}
	p.Sentinels = []string{d.Sentinels()[1].Addr, one.Addr}
	require.Equal(t, one.Addr, p.found("sentinel-unreachable")["sentinel-unreachable"].Node)
	require.NoError(t, one.Resume())
	p.DialSentinel, p.opt.Timeout, p.Sentinels = dial, timeout, d.Addrs()

	require.NoError(t, one.Kill())
	require.Equal(t, one.Addr, p.found("sentinel-unreachable")["sentinel-unreachable"].Node)
	p.Sentinels = []string{d.Sentinels()[1].Addr}
	require.Equal(t, one.Addr, p.found("sentinel-unreachable")["sentinel-unreachable"].Node, "known to the one that was named")

	// The primary does not name a replica that is cut off from it.
	replica := d.Nodes()[len(d.Nodes())-1]
	p.do(d.Nodes()[0], "ACL", "SETUSER", "default", "-psync", "-sync")
	p.do(d.Nodes()[0], "CLIENT", "KILL", "TYPE", "replica")
	require.Eventually(t, func() bool {
		report := doctor.Examine(ctx, []doctor.Deployment{p.Deployment}, p.opt)
		for _, f := range report.Findings {
			if f.Code == "replica-link" && f.Node == replica.Addr {
				return len(report.Nodes) == len(d.Nodes())
			}
		}
		return false
	}, soon, pollEvery)

	// A sentinel that hangs leaves time for the others, which know that replica.
	hangs := d.Sentinels()[2]
	p.Sentinels, p.opt.Timeout = []string{hangs.Addr, d.Sentinels()[1].Addr}, 3*time.Second
	require.NoError(t, hangs.Pause())
	report := doctor.Examine(ctx, []doctor.Deployment{p.Deployment}, p.opt)
	require.NoError(t, hangs.Resume())
	require.Len(t, report.Nodes, len(d.Nodes()))
}
