// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/doctor"
)

func TestFaultsOfAClusterAreFound(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d := server.Cluster(t, server.WithFlavour(f), server.WithConfig("min-replicas-to-write", "1"),
			server.WithConfig("cluster-require-full-coverage", "no"))
		p := healthy(t, d)
		primary := d.Nodes()[0]
		id := func(n *server.Node) string {
			reply := p.do(n, "CLUSTER", "MYID")
			text, err := reply.ToString()
			require.NoError(t, err)
			return text
		}

		for code, pair := range map[string][]string{
			"full-coverage":        {"cluster-require-full-coverage", "yes"},
			"replica-migration":    {"cluster-allow-replica-migration", "yes"},
			"min-replicas-cluster": {"min-replicas-to-write", "0"},
		} {
			back := p.setFor(pair...)
			p.found(code)
			back()
		}

		// So many keys of each primary are looked at.
		const many = 700
		for _, tag := range []string{"b", "c"} { // at two primaries
			set := p.Client.B().Eval().Script("for i = 1, ARGV[1] do redis.call('SET', KEYS[1] .. i, 'x', 'PX', 60000) end").
				Numkeys(1).Key("lock:{" + tag + "}").Arg(strconv.Itoa(many)).Build()
			require.True(t, rueidis.IsRedisNil(p.Client.Do(ctx, set).Error()))
		}
		require.Contains(t, p.found("plain-strings")["plain-strings"].What, fmt.Sprint(2*many))
		for _, n := range d.Nodes()[:3] {
			p.do(n, "FLUSHALL")
		}

		p.do(primary, "CLUSTER", "SETSLOT", "7", "MIGRATING", id(d.Nodes()[1]))
		require.Equal(t, primary.Addr, p.found("slots-moving")["slots-moving"].Node)
		p.do(primary, "CLUSTER", "SETSLOT", "7", "STABLE")

		p.do(primary, "CLUSTER", "DELSLOTS", "7", "8", "10")
		require.Contains(t, p.found("slots-uncovered")["slots-uncovered"].What, "7-8 10-10")
		back := p.setFor("cluster-require-full-coverage", "yes")
		p.do(primary, "CLUSTER", "DELSLOTS", "11") // it looks at the coverage when that changes
		require.Eventually(t, func() bool { return p.examine()["cluster-down"].Node == primary.Addr }, soon, pollEvery)
		back()
		p.do(primary, "CLUSTER", "ADDSLOTS", "7", "8", "10", "11")
		p.recovers()

		// The replica may not read its primary's data any more, by PSYNC or by SYNC, its second try.
		other, replica := d.Nodes()[1], d.Nodes()[4]
		p.do(other, "ACL", "SETUSER", "default", "-psync", "-sync")
		p.do(other, "CLIENT", "KILL", "TYPE", "replica")
		require.Eventually(t, func() bool { return p.examine()["replica-link"].Node == replica.Addr }, soon, pollEvery)
		require.Equal(t, other.Addr, p.examine()["min-replicas-unmet"].Node)
		p.do(other, "ACL", "SETUSER", "default", "+psync", "+sync")
		p.recovers()

		require.NoError(t, d.Nodes()[3].Kill())
		gone := d.Nodes()[3].Addr
		require.Eventually(t, func() bool { return p.examine()["node-down"].Node == gone }, soon, pollEvery)
		found := p.found("node-down", "no-replica", "min-replicas-unmet")
		require.Equal(t, primary.Addr, found["no-replica"].Node)

		// A server that does not answer refuses nothing, so no right is asked for.
		p.opt.Timeout = time.Second
		require.NoError(t, primary.Pause())
		report := doctor.Examine(ctx, []doctor.Deployment{p.Deployment}, p.opt)
		require.NoError(t, primary.Resume())
		require.NotEmpty(t, report.Errors)
		require.Contains(t, whats(report, "not-checked"), "keys under the prefix: a primary does not answer")
		for _, f := range report.Findings {
			require.NotContains(t, f.Mend, "ACL SETUSER", "%+v", f)
		}

		// Nobody can take over from this primary. That it is marked as failed makes it no more reachable.
		require.NoError(t, primary.Kill())
		require.Eventually(t, func() bool {
			report = doctor.Examine(ctx, []doctor.Deployment{p.Deployment}, p.opt)
			return len(whats(report, "node-down")) == 2
		}, soon, pollEvery)
		require.ErrorIs(t, errors.Join(report.Errors...), loader.ErrDown)
	})
}
