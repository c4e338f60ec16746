// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// said is a node that has answered in this way.
func said(info map[string]string) *node {
	return &node{addr: "here:1", of: &Deployment{}, info: info, set: map[string]string{}}
}

func codesOf(n *node) (codes []string) {
	for _, f := range n.found {
		codes = append(codes, f.Code)
	}
	return codes
}

// What no server of these tests can be made to say.
func TestWhatServersSay(t *testing.T) {
	for version, codes := range map[string][]string{
		"6.2.14": {"server-version"}, "7.0.15": nil, "7.2.4": nil, "8.2.0": nil, "255.255.255": nil, "": nil,
	} {
		n := said(map[string]string{"redis_version": version})
		n.version(t.Context())
		require.Equal(t, codes, codesOf(n), version)
	}
	n := said(map[string]string{"aof_last_write_status": "err", "rdb_last_bgsave_status": "ok"})
	n.settings(t.Context())
	require.Equal(t, []string{"not-checked", "persistence-failing"}, codesOf(n), "it names no setting")
}

func TestCoverage(t *testing.T) {
	const line = "id 127.0.0.1:7000@17000 myself,master - 0 0 1 connected"
	free, moving := coverage(line + " 0-9 11 13-16383 [93->-other] [94-<-other]\n" + "id2 127.0.0.1:7001@17001 slave id 0 0 1 connected\n")
	require.Equal(t, []string{"10-10", "12-12"}, free)
	require.Equal(t, []string{"[93->-other]", "[94-<-other]"}, moving)
	free, _ = coverage(line + " 0-16381\n")
	require.Equal(t, []string{"16382-16383"}, free)
	free, _ = coverage(line + " 0-16383\n")
	require.Empty(t, free)
	free, _ = coverage(line + " 0-9\n" + "id2 :0@0 master,fail,noaddr - 0 0 1 disconnected 10-16383\n")
	require.Equal(t, []string{"10-16383"}, free, "an empty node came to its address")
}
