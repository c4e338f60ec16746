// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/rights"
)

// grant gives every node a user with the rules that "acl" prints, but those left out, and returns
// the environment that names its password.
func grant(t *testing.T, d *server.Deployment, as string, flags []string, without ...string) []string {
	t.Helper()
	r := holdfast(t, nil, append([]string{"acl", "--as", as, "--json"}, flags...)...)
	require.Equal(t, 0, r.code, r)
	rules := decode[struct{ Rules []string }](t, r).Rules
	require.Contains(t, rules, ">PASSWORD")
	rules = slices.DeleteFunc(rules, func(rule string) bool { return slices.Contains(without, rule) })
	for _, n := range d.Nodes() {
		_, err := n.Do(context.Background(), append([]string{"ACL", "SETUSER", as}, rules...)...)
		require.NoError(t, err)
	}
	return []string{"HOLDFAST_PASSWORD=PASSWORD"}
}

// The line of a file of users is one: a server that starts with it lets the user in.
func TestACLFile(t *testing.T) {
	t.Parallel()
	const pattern = `l[o]cks:`
	r := holdfast(t, nil, "acl", "--for", "operator", "--as", "oncall", "--prefix", pattern, "--file")
	require.Equal(t, 0, r.code, r)
	line := strings.Replace(strings.TrimSuffix(r.out, "\n"), ">PASSWORD", ">s3cret", 1)
	require.NotContains(t, line, "\n")
	inJSON := holdfast(t, nil, "acl", "--for", "operator", "--as", "oncall", "--prefix", pattern, "--file", "--json")
	require.Equal(t, strings.TrimSuffix(r.out, "\n"), decode[struct{ Line string }](t, inJSON).Line)
	d := server.Single(t, server.Owned(), server.WithACL(line))
	d.Load(t)
	do := func(args ...string) result {
		return holdfast(t, []string{"HOLDFAST_PASSWORD=s3cret"}, append(args, "--user", "oncall", "--addr", d.Addrs()[0])...)
	}
	require.Equal(t, 0, do("ls", "--prefix", pattern).code)
	r = do("inspect", "order", "--prefix", pattern)
	require.Equal(t, 5, r.code, r)
	r = do("inspect", "order")
	require.Equal(t, 1, r.code, r)
}

func TestACLCheck(t *testing.T) {
	t.Parallel()
	require.Contains(t, holdfast(t, nil, "acl", "--for", "client", "--as", "a&b").out, "ACL SETUSER 'a&b' reset ")
	d := server.Single(t, server.Owned())
	check := func(role, as string) result {
		return holdfast(t, nil, "acl", "--for", role, "--as", as, "--check", "--addr", d.Addrs()[0])
	}
	for _, role := range []string{"client", "loader", "operator"} {
		r := check(role, "nobody-yet")
		require.Equal(t, 0, r.code, r)
		require.Contains(t, r.out, "no user nobody-yet yet")
		users, err := d.Nodes()[0].Do(context.Background(), "ACL", "USERS")
		require.NoError(t, err)
		names, err := users.AsStrSlice()
		require.NoError(t, err)
		require.Equal(t, []string{"default"}, names, "the temporary user is gone")
	}
	// Each right is tried: without it, the check names it.
	for _, role := range []rights.Role{rights.Client, rights.Loader, rights.Operator} {
		flags := []string{"--for", string(role)}
		need := rights.Need{Role: role, Prefix: "lock:"}
		grant(t, d, "someone", flags)
		require.Equal(t, 0, check(string(role), "someone").code)
		for _, rule := range need.Rules() {
			if rule == "reset" {
				continue
			}
			grant(t, d, "someone", flags, rule)
			r := check(string(role), "someone")
			require.Equal(t, 3, r.code, "without %s: %v", rule, r)
			require.Contains(t, r.out, "lacks rights")
			if strings.HasPrefix(rule, "+") {
				require.Contains(t, r.out, rule+": ")
			}
		}
	}
}

// ACLs are not replicated, so each node is asked.
func TestACLCheckAsksReplicas(t *testing.T) {
	t.Parallel()
	for _, start := range []func(testing.TB, ...server.Option) *server.Deployment{kinds["replicated"], server.Sentinel} {
		d := start(t, server.Owned())
		whole(t, d)
		flags := []string{"--for", "operator", "--as", "someone"}
		grant(t, d, "someone", flags[:2])
		replica := d.Nodes()[1]
		check := func() result { return addresses(d).do(t, "acl", append(flags, "--check")...) }
		r := check()
		require.Equal(t, 0, r.code, r)
		require.Equal(t, len(d.Nodes()), strings.Count(r.out, "has all rights"), r)
		_, err := replica.Do(context.Background(), "ACL", "SETUSER", "someone", "-scan")
		require.NoError(t, err)
		r = check()
		require.Equal(t, 3, r.code, r)
		require.Contains(t, r.out, replica.Addr+": user someone: lacks rights")
		require.NoError(t, replica.Pause())
		r = addresses(d).do(t, "acl", append(flags, "--check", "--timeout", "4s")...)
		require.Equal(t, 1, r.code, r)
		require.Contains(t, r.errors, replica.Addr)
		require.NoError(t, replica.Resume())
	}
}

func TestTheLineIsQuoted(t *testing.T) {
	r := holdfast(t, nil, "acl", "--for", "client", "--prefix", "{it's}[*]:", "--as", "shop")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, `ACL SETUSER shop reset on '>PASSWORD' '~{it'\''s}\[\*\]:*' '&{it'\''s}\[\*\]:*' +ping`)
	require.Contains(t, r.out, `'+pubsub|shardnumsub'`)
}
