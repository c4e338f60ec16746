// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunThatNobodyMayHaveYet(t *testing.T) {
	_, where := loaded(t)
	for says, flags := range map[string][]string{
		"nobody gets it yet": {"--guard", "1h"},
		"replica":            {"--replicas", "1", "--timeout", "3s"},
	} {
		r := where.do(t, "run", append(flags, "-n", "--print-holder", "a", "--", "echo", "ran")...)
		require.Equal(t, map[string]int{"--guard": 1, "--replicas": 69}[flags[0]], r.code, r)
		require.Empty(t, r.out)
		require.Contains(t, r.errors, says)
	}
}

func TestRunAndBenchNeedTheRightsOfAClient(t *testing.T) {
	d, where := loaded(t)
	r := holdfast(t, nil, "acl", "--for", "client", "--as", "shop")
	require.Equal(t, 0, r.code, r)
	line := strings.TrimSpace(r.out)
	line = line[strings.LastIndex(line, "\n")+1:]
	words := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "'", ""), ">PASSWORD", ">s3cret"))
	require.Equal(t, []string{"ACL", "SETUSER", "shop"}, words[:3], line)
	_, err := d.Nodes()[0].Do(context.Background(), words...)
	require.NoError(t, err)
	shop := append(where, "--user", "shop")
	password := []string{"HOLDFAST_PASSWORD=s3cret"}
	require.Equal(t, ran, shop.as(t, password, "run", "a", "--", "echo", "ran"))

	h := holding(t, where, "a", "--label", "nightly")
	r = shop.as(t, password, "run", "a", "-n", "--print-holder", "--", "echo", "ran")
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "(nightly) has it since")
	h.finish()
	r = shop.as(t, password, "run", "a", "--prefix", "other:", "--", "echo", "ran")
	require.Equal(t, 77, r.code, r)
	require.Contains(t, r.errors, "acl --for client")
	r = shop.as(t, password, "bench", "--prefix", "other:")
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "acl --for client --prefix other:")
}
