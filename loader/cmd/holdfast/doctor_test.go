// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

func TestDoctor(t *testing.T) {
	t.Parallel()
	d := server.Replicated(t, 1, server.WithConfig("appendonly", "yes"), server.WithConfig("appendfsync", "always"),
		server.WithConfig("min-replicas-to-write", "1"),
		server.WithConfig("slowlog-log-slower-than", "-1")) // the machine may be busy
	whole(t, d)
	d.Load(t)
	n := d.Nodes()[0]
	set := func(pairs ...string) {
		_, err := n.Do(context.Background(), append([]string{"CONFIG", "SET"}, pairs...)...)
		require.NoError(t, err)
	}
	doctor := func(more ...string) result {
		return holdfast(t, nil, append([]string{"doctor", "--slow", "20s", "--addr", n.Addr}, more...)...)
	}
	require.Equal(t, result{0, "nothing found\n", ""}, doctor())
	r := doctor("-v", "--addr", d.Nodes()[1].Addr)
	require.Equal(t, 0, r.code, r)
	require.Equal(t, 1, strings.Count(r.out, n.Addr), r.out)
	require.Contains(t, r.out, "clocks")

	set("appendfsync", "everysec")
	r = doctor()
	require.Equal(t, 0, r.code, "a note: %v", r)
	require.Contains(t, r.out, "note appendfsync-everysec at "+n.Addr)
	set("min-replicas-to-write", "0")
	r = doctor()
	require.Equal(t, 3, r.code, r)
	require.Contains(t, r.out, "danger min-replicas at "+n.Addr+": min-replicas-to-write 0")
	require.Contains(t, r.out, "mend: CONFIG SET min-replicas-to-write 1")

	r = doctor("--json")
	require.Equal(t, 3, r.code, r)
	var report struct {
		Command        string
		ExitCode       int `json:"exit_code"`
		Nodes, Checked []string
		Findings       []struct{ Code, Severity, Node, What, Why, Mend string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &report))
	require.Equal(t, "doctor", report.Command)
	require.Equal(t, 3, report.ExitCode)
	require.Len(t, report.Nodes, 2)
	require.NotEmpty(t, report.Checked)
	require.Len(t, report.Findings, 2)
	require.Equal(t, "min-replicas", report.Findings[0].Code, "dangers come first")
	require.Equal(t, "note", report.Findings[1].Severity)

	r = doctor("--accept", "min-replicas,no-replica")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, "note min-replicas at "+n.Addr)
	require.Contains(t, r.out, "(accepted)\n")
	r = doctor("--accept", "bogus")
	require.Equal(t, 2, r.code, r)
	require.Contains(t, r.errors, `"bogus"`)

	require.NoError(t, n.Kill())
	r = holdfast(t, nil, "doctor", "--addr", n.Addr)
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, n.Addr)
	require.Empty(t, r.out)
}

// A node that is named and cannot be reached is an error, also if its Cluster says that it is down.
func TestDoctorOfANamedNodeThatIsDown(t *testing.T) {
	t.Parallel()
	d := server.Cluster(t)
	whole(t, d)
	d.Load(t)
	one, other := d.Nodes()[0], d.Nodes()[len(d.Nodes())-1]
	require.NoError(t, other.Kill())
	var r result
	require.Eventually(t, func() bool {
		r = at(one.Addr, other.Addr).do(t, "doctor")
		return strings.Contains(r.out, "node-down at "+other.Addr)
	}, soon, pollEvery)
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, other.Addr)
}

// Behind Sentinel, a primary that hangs is not the sentinels' fault, and the rest is looked at.
func TestAPrimaryThatHangsBehindSentinel(t *testing.T) {
	t.Parallel()
	d := server.Sentinel(t, server.Owned())
	for _, s := range d.Sentinels() {
		_, err := s.Do(context.Background(), "SENTINEL", "SET", d.SentinelMaster, "down-after-milliseconds", "60000")
		require.NoError(t, err)
	}
	var primary *server.Node
	require.Eventually(t, func() bool { // on a busy machine there may have been a failover before that
		all, err := d.Primaries(context.Background())
		if err != nil || len(all) != 1 {
			return false
		}
		primary = all[0]
		return !slices.ContainsFunc(d.Sentinels(), func(s *server.Node) bool {
			m, _ := s.Do(context.Background(), "SENTINEL", "MASTER", d.SentinelMaster)
			says, _ := m.AsStrMap()
			return says["flags"] != "master" || net.JoinHostPort(says["ip"], says["port"]) != primary.Addr
		})
	}, soon, pollEvery)
	whole(t, d)
	d.Load(t)
	require.NoError(t, primary.Pause())
	t.Cleanup(func() { require.NoError(t, primary.Resume()) })
	for command, sees := range map[string]string{"doctor": "no-persistence", "verify": "unchanged", "ls": "", "load": ""} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			r := addresses(d).do(t, command, "--timeout", "8s")
			require.Equal(t, 1, r.code, r)
			require.Contains(t, r.errors, primary.Addr+": the primary that the sentinels name does not answer")
			require.NotContains(t, r.errors, "--tls")
			require.Contains(t, r.out, sees)
		})
	}
}

// A sentinel that was cut off over a failover names the primary of before. The others know the new one.
func TestASentinelThatNamesADeadPrimary(t *testing.T) {
	t.Parallel()
	d := server.Sentinel(t, server.Owned())
	whole(t, d)
	d.Load(t)
	for _, words := range []string{"REMOVE " + d.SentinelMaster, "MONITOR " + d.SentinelMaster + " 127.0.0.1 1 3"} {
		_, err := d.Sentinels()[0].Do(context.Background(), append([]string{"SENTINEL"}, strings.Fields(words)...)...)
		require.NoError(t, err)
	}
	for _, command := range []string{"ls", "verify", "load"} {
		r := addresses(d).do(t, command)
		require.Equal(t, 0, r.code, r)
	}
}

// A replica that is cut off is missing in what the primary says, and is looked at all the same.
func TestVerifyOfACutOffReplica(t *testing.T) {
	t.Parallel()
	d := server.Sentinel(t, server.Owned())
	whole(t, d)
	d.Load(t)
	primary, replica := d.Nodes()[0], d.Nodes()[len(d.Nodes())-1]
	for _, words := range []string{"ACL SETUSER default -psync -sync", "CLIENT KILL TYPE replica"} {
		_, err := primary.Do(context.Background(), strings.Fields(words)...)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		return replica.Info(context.Background(), "replication", "master_link_status") == "down"
	}, soon, pollEvery)
	r := addresses(d).do(t, "verify")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, replica.Addr)
	require.Contains(t, r.out, fmt.Sprintf("is on all %d nodes", len(d.Nodes())))
}
