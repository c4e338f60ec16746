// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// secret needs percent-encoding in a URL; encoded is how it is written there.
const (
	secret  = "s3/cr@et"
	encoded = "s3%2Fcr%40et"
)

func TestURLs(t *testing.T) {
	t.Parallel()
	d := server.Single(t, server.WithACL("user deployer on >"+secret+" -@all +ping +role +function|list +function|load"))
	addr := d.Addrs()[0]
	whole := "redis://deployer:" + encoded + "@" + addr
	for _, c := range []struct {
		name string
		env  []string
		args []string
	}{
		{"all in the URL", nil, []string{"--addr", whole}},
		{"a database behind it", nil, []string{"--addr", whole + "/3"}},
		{"no user or password", []string{"HOLDFAST_PASSWORD=" + secret}, []string{"--addr", "redis://" + addr, "--user", "deployer"}},
		{"the password elsewhere", []string{"HOLDFAST_PASSWORD=" + secret}, []string{"--addr", "redis://deployer@" + addr}},
		{"the user elsewhere", nil, []string{"--addr", "redis://:" + encoded + "@" + addr, "--user", "deployer"}},
		{"the same twice", []string{"HOLDFAST_PASSWORD=" + secret}, []string{"--addr", whole + "," + whole}},
		{"from the environment", []string{"HOLDFAST_ADDR=" + whole}, nil},
		{"host and port from the environment", []string{"HOLDFAST_ADDR=" + addr, "HOLDFAST_PASSWORD=" + secret},
			[]string{"--user", "deployer"}},
		{"a flag above the environment", []string{"HOLDFAST_ADDR=redis://other:pw@127.0.0.1:1"}, []string{"--addr", whole}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := holdfast(t, c.env, append([]string{"load"}, c.args...)...)
			require.Equal(t, 0, r.code, r)
			require.Contains(t, r.out, addr)
			require.NotContains(t, r.out+r.errors, encoded)
		})
	}
}

// What is wrong is named, with exit code 2, and no password is repeated.
func TestWrongAddresses(t *testing.T) {
	for _, c := range []struct {
		name, addr, says string
		env, args        []string
	}{
		{"scheme", "http://u:hunter2@h:1", "redis:// or rediss://", nil, nil},
		{"not encoded #", "redis://u:hunter2#x@h:1", "percent-encoded", nil, nil},
		{"not encoded /", "redis://u:hunter2/x@h:1", "percent-encoded", nil, nil},
		{"not encoded ?", "redis://u:hunter2?x@h:1", "percent-encoded", nil, nil},
		{"digits, then not encoded /", "redis://u:12/hunter2@h:1", "behind a URL's host", nil, nil},
		{"bad escape", "redis://u:hunter2%zz@h:1", "percent-encoded", nil, nil},
		{"no host", "redis://u:hunter2@", "percent-encoded", nil, nil},
		{"parameters", "redis://u:hunter2@h:1?timeout=3", "no parameters", nil, nil},
		{"a password without a URL", "u:hunter2@h:1", "redis://user:password@", nil, nil},
		{"a user without a password", "redis://u@h:1", "HOLDFAST_PASSWORD", nil, nil},
		{"TLS for some", "rediss://h:1,redis://h:2", "either all", nil, nil},
		{"two users", "redis://a:hunter2@h:1,redis://b:hunter2@h:2", "another user", nil, nil},
		{"a URL and a flag", "redis://a:hunter2@h:1", "another user", nil, []string{"--user", "b"}},
		{"a URL and the environment", "redis://a:hunter2@h:1", "HOLDFAST_PASSWORD", []string{"HOLDFAST_PASSWORD=other"}, nil},
		{"sentinels", "redis://a:hunter2@h:1", "--sentinel-user", nil, []string{"--sentinel-master", "m"}},
		{"nothing between commas", "redis://a:hunter2@h:1,,", "empty address", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, given := range []struct {
				where     string
				env, args []string
			}{
				{"--addr", c.env, append([]string{"load", "--addr", c.addr}, c.args...)},
				{"HOLDFAST_ADDR", append([]string{"HOLDFAST_ADDR=" + c.addr}, c.env...), append([]string{"load"}, c.args...)},
			} {
				r := holdfast(t, given.env, given.args...)
				require.Equal(t, 2, r.code, r)
				require.Contains(t, r.errors, c.says)
				require.NotContains(t, r.errors, "hunter2")
				if c.name != "a user without a password" {
					require.Contains(t, r.errors, given.where)
				}
			}
		})
	}
	r := holdfast(t, nil, "load", "redis://u:hunter2@h:1")
	require.Equal(t, 2, r.code, r)
	require.Contains(t, r.errors, "--addr")
	require.NotContains(t, r.errors, "hunter2")
}

func TestWrongPasswordsAreToldAsSuch(t *testing.T) {
	t.Parallel()
	d := server.Single(t, server.Owned())
	addr := d.Addrs()[0]
	_, err := d.Nodes()[0].Do(context.Background(), "CONFIG", "SET", "requirepass", secret)
	require.NoError(t, err)
	for _, c := range []struct {
		name, addr, says string
	}{
		{"none", addr, "wants a password"},
		{"wrong", "redis://:nonsense@" + addr, "wrong user or password"},
		{"unknown user", "redis://nobody:" + encoded + "@" + addr, "wrong user or password"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := holdfast(t, nil, "verify", "--addr", c.addr)
			require.Equal(t, 1, r.code, r)
			require.Contains(t, r.errors, c.says)
			require.Contains(t, r.errors, "HOLDFAST_PASSWORD")
		})
	}
	r := holdfast(t, []string{"HOLDFAST_PASSWORD=" + secret}, "load", "--addr", addr)
	require.Equal(t, 0, r.code, r)
}

// otherVersion is the library, as if it had another version.
func otherVersion(version string) string {
	return strings.Replace(functions.Source, "local VERSION = '"+functions.Version+"'", "local VERSION = '"+version+"'", 1)
}

func TestVerifyAdvises(t *testing.T) {
	t.Parallel()
	d := server.Replicated(t, 1)
	whole(t, d)
	primary, replica := d.Nodes()[0], d.Nodes()[1]
	do := func(n *server.Node, words ...string) {
		t.Helper()
		_, err := n.Do(context.Background(), words...)
		require.NoError(t, err)
	}
	verify := func() string {
		t.Helper()
		r := holdfast(t, nil, "verify", "--addr", primary.Addr)
		require.Equal(t, 3, r.code, r)
		return r.errors
	}
	const load = `"holdfast load" brings it`
	require.Contains(t, verify(), load)

	do(primary, "FUNCTION", "LOAD", "REPLACE", otherVersion(functions.Version+"-rc.1"))
	require.Contains(t, verify(), load)

	do(primary, "FUNCTION", "LOAD", "REPLACE", otherVersion("1.9.0"))
	require.Contains(t, verify(), "an older contract is there: \"holdfast load --force\"")

	do(primary, "FUNCTION", "LOAD", "REPLACE", otherVersion("99.0.0"))
	require.Contains(t, verify(), "a newer contract is there: use the holdfast command of that release")

	do(primary, "FUNCTION", "LOAD", "REPLACE", "#!lua name=holdfast\nredis.register_function('mine', function() end)")
	said := verify()
	require.NotContains(t, said, load, "load would refuse")
	require.Contains(t, said, "another's")

	r := holdfast(t, nil, "load", "--force", "--addr", primary.Addr)
	require.Equal(t, 0, r.code, r)
	do(replica, "CONFIG", "SET", "replica-read-only", "no")
	do(replica, "FUNCTION", "FLUSH")
	said = verify()
	require.NotContains(t, said, load, "load would change nothing")
	require.Contains(t, said, "replicas")
}

func TestADryRunSaysFromWhichVersionToWhich(t *testing.T) {
	t.Parallel()
	d := server.Replicated(t, 1)
	whole(t, d)
	dry := func(command string, more ...string) string {
		t.Helper()
		r := holdfast(t, nil, append([]string{command, "--dry-run", "--addr", d.Nodes()[0].Addr}, more...)...)
		require.Equal(t, 0, r.code, r)
		return r.out
	}
	bring := func(version string) {
		t.Helper()
		_, err := d.Nodes()[0].Do(context.Background(), "FUNCTION", "LOAD", "REPLACE", otherVersion(version))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			r := holdfast(t, nil, "version", "--addr", d.Nodes()[0].Addr)
			return strings.Count(r.out, version) >= 2
		}, soon, pollEvery)
	}
	ours := functions.Version
	require.Equal(t, 2, strings.Count(dry("load"), "none -> "+ours), "the primary and the replica")
	older := ours + "-rc.1"
	bring(older)
	require.Equal(t, 2, strings.Count(dry("load"), older+" -> "+ours))
	bring("99.0.0")
	require.Equal(t, 2, strings.Count(dry("load", "--force"), "99.0.0 -> "+ours))
	require.Equal(t, 2, strings.Count(dry("unload"), "99.0.0 -> none"))
	require.Contains(t, dry("load", "--force", "--json"), `"after": "`+ours+`"`)
}
