package main_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// all are the addresses of a deployment: of several servers each is one of its own.
func all(d *server.Deployment) string {
	addrs := d.Addrs()
	if d.Kind == server.KindSeveral {
		addrs = nil
		for _, n := range d.Nodes() {
			addrs = append(addrs, n.Addr)
		}
	}
	return strings.Join(addrs, ",")
}

// runAt runs a command under a lock of a deployment that has the library.
func runAt(t *testing.T, d *server.Deployment, args ...string) result {
	t.Helper()
	where := []string{"--addr", all(d)}
	if d.SentinelMaster != "" {
		where = append(where, "--sentinel-master", d.SentinelMaster)
	}
	r := holdfast(t, nil, append([]string{"load"}, where...)...)
	require.Equal(t, 0, r.code, r)
	return holdfast(t, nil, append(append([]string{"run", "a"}, where...), args...)...)
}

func TestRunOnEveryKindOfDeployment(t *testing.T) {
	ran := result{0, "ran\n", ""}
	t.Run("cluster", func(t *testing.T) {
		d := server.Cluster(t)
		whole(t, d)
		require.Equal(t, ran, runAt(t, d, "--", "echo", "ran"))
	})
	t.Run("sentinel", func(t *testing.T) {
		d := server.Sentinel(t)
		whole(t, d)
		require.Equal(t, ran, runAt(t, d, "--", "echo", "ran"))
	})
	t.Run("quorum", func(t *testing.T) {
		d := server.Several(t, 3, server.Owned())
		// A server that has just started remembers too little for a lease of the default length.
		require.Equal(t, ran, runAt(t, d, "--quorum", "--lease", "1s", "--guard", "2s", "--", "echo", "ran"))
		require.NoError(t, d.Nodes()[1].Kill())
		r := holdfast(t, nil, "run", "b", "--addr", all(d), "--quorum", "--lease", "1s", "--guard", "2s",
			"--", "echo", "ran")
		require.Equal(t, ran, r, "a minority is lost")
	})
	t.Run("replicas", func(t *testing.T) {
		d := server.Replicated(t, 1)
		whole(t, d)
		require.Equal(t, ran, runAt(t, d, "--replicas", "1", "--", "echo", "ran"))
		r := runAt(t, d, "--replicas", "2", "--", "echo", "ran")
		require.Equal(t, 69, r.code, r)
		require.Empty(t, r.out)
	})
	t.Run("guard", func(t *testing.T) {
		d := server.Single(t, server.Owned())
		r := runAt(t, d, "--guard", "1h", "-n", "--print-holder", "--", "echo", "ran")
		require.Equal(t, 1, r.code, r)
		require.Contains(t, r.errors, "nobody gets it yet")
	})
}

func TestRunNeedsTheRightsOfAClient(t *testing.T) {
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
	require.Equal(t, result{0, "ran\n", ""}, holdfast(t, password, append(append([]string{"run", "a"}, shop...), "--", "echo", "ran")...))

	h := holding(t, where, "a", "--label", "nightly")
	r = holdfast(t, password, append(append([]string{"run", "a", "-n", "--print-holder"}, shop...), "--", "echo", "ran")...)
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "(nightly) has it since")
	h.finish()
	r = holdfast(t, password, append(append([]string{"run", "a", "--prefix", "other:"}, shop...), "--", "echo", "ran")...)
	require.Equal(t, 77, r.code, r)
	require.Contains(t, r.errors, "acl --for client")
}
