// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader"
)

const (
	soon      = time.Minute
	pollEvery = 20 * time.Millisecond
)

// binary is the command, built once for all tests.
var binary string

// What the tests' build says of itself.
const (
	releaseVersion  = "v9.8.7-test"
	releaseRevision = "0123456789abcdef0123456789abcdef01234567"
)

func TestMain(m *testing.M) {
	reexec.Main(roles)
	_ = flag.Set("test.parallel", "8") // tests here wait more than they compute
	// Children begin with a signal as the system has it, also if these tests were started by nohup, or with "&".
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "holdfast-command-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "holdfast")
	release := "-X main.version=" + releaseVersion + " -X main.revision=" + releaseRevision // as .ci/release does
	if out, err := exec.Command("go", "build", "-ldflags", release, "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

type result struct {
	code        int
	out, errors string
}

// holdfast runs the command. env adds to an environment that has none of the command's own
// variables.
func holdfast(t *testing.T, env []string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*soon)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// whole waits until the deployment sees itself in full.
func whole(t *testing.T, d *server.Deployment) {
	t.Helper()
	opt := d.ClientOption()
	opt.DisableCache = true
	client, err := rueidis.NewClient(opt)
	require.NoError(t, err)
	defer client.Close()
	require.Eventually(t, func() bool {
		nodes, err := cluster.Topology(context.Background(), client)
		return err == nil && len(nodes) == len(d.Nodes())
	}, soon, pollEvery)
}

// kinds are the deployments that the command is tried on.
var kinds = map[string]func(testing.TB, ...server.Option) *server.Deployment{
	"single": server.Single,
	"replicated": func(tb testing.TB, opts ...server.Option) *server.Deployment {
		return server.Replicated(tb, 1, opts...)
	},
	"sentinel": server.Sentinel,
	"cluster":  server.Cluster,
}

// place has the flags that name a deployment.
type place []string

// addresses name each of several servers.
func addresses(d *server.Deployment) place {
	addrs := d.Addrs()
	if d.Kind == server.KindSeveral {
		addrs = nil
		for _, n := range d.Nodes() {
			addrs = append(addrs, n.Addr)
		}
	}
	p := place{"--addr", strings.Join(addrs, ",")}
	if d.SentinelMaster != "" {
		p = append(p, "--sentinel-master", d.SentinelMaster)
	}
	return p
}

// do runs the command there.
func (p place) do(t *testing.T, command string, more ...string) result {
	t.Helper()
	return p.as(t, nil, command, more...)
}

// as is for the user that env has the password of.
func (p place) as(t *testing.T, env []string, command string, more ...string) result {
	t.Helper()
	return holdfast(t, env, append(append([]string{command}, p...), more...)...)
}

// doer runs the command on one deployment.
type doer func(command string, more ...string) result

var ran = result{0, "ran\n", ""}

// Users with exactly the rights that "acl" prints can do all that their roles are for.
func TestEveryKindOfDeployment(t *testing.T) {
	t.Parallel()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		for kind, start := range kinds {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				d := start(t, server.WithFlavour(f), server.Owned())
				whole(t, d)
				as := func(user, role string, flags ...string) doer {
					flags = append(flags, "--for", role)
					if kind == "cluster" || kind == "sentinel" {
						flags = append(flags, "--"+kind)
					}
					env, at := grant(t, d, user, flags), append(addresses(d), "--user", user)
					return func(command string, more ...string) result { return at.as(t, env, command, more...) }
				}
				load := as("loader", "loader", "--unload")
				fromNothingToUnloaded(t, d, load)
				require.Equal(t, 0, load("load").code)

				deployment, more := kind, []string(nil)
				if kind == "replicated" {
					deployment, more = "single", []string{"--replicas", "1"}
				}
				bench := as("bench", "client", "--replicas", "--prefix", "holdfast-bench:")
				benchAt(t, d, deployment, bench, more...)
				run := as("client", "client", "--guard", "--replicas")
				require.Equal(t, ran, run("run", append(more, "a", "--", "echo", "ran")...))

				option := d.ClientOption()
				option.Username, option.Password = "client", "PASSWORD"
				seeAndBreak(t, option, as("operator", "operator"))
			})
		}
	})
}

func fromNothingToUnloaded(t *testing.T, d *server.Deployment, do doer) {
	nodes := len(d.Nodes())

	require.Equal(t, 3, do("verify").code)
	r := do("load", "--dry-run")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, "would be loaded")
	require.Equal(t, 3, do("verify").code, "a dry run writes nothing")

	r = do("load")
	require.Equal(t, 0, r.code, r)
	require.Equal(t, nodes+1, strings.Count(r.out, "\n"), "a line per node and one for all: %s", r.out)
	for _, n := range d.Nodes() {
		require.Contains(t, r.out, n.Addr)
	}
	r = do("load")
	require.Equal(t, 0, r.code, r)
	require.Equal(t, nodes, strings.Count(r.out, "unchanged"), r.out)
	require.Contains(t, r.out, "nothing to change")

	require.Equal(t, 0, do("verify").code)
	r = do("version")
	require.Equal(t, 0, r.code, r)
	require.Equal(t, nodes+1, strings.Count(r.out, functions.Version), r.out)

	r = do("unload", "--json")
	require.Equal(t, 0, r.code, r)
	var report struct {
		Command  string
		ExitCode int `json:"exit_code"`
		Changed  bool
		loader.Report
	}
	require.NoError(t, json.Unmarshal([]byte(r.out), &report))
	require.Equal(t, "unload", report.Command)
	require.True(t, report.Changed)
	require.Len(t, report.Nodes, nodes)
	require.Equal(t, loader.Unloaded, report.Nodes[0].Action)
	require.Equal(t, 3, do("verify").code)
}

// A load that begins before the Cluster is made waits for it.
func TestAClusterThatIsBeingMade(t *testing.T) {
	t.Parallel()
	n := server.Cluster(t).Nodes()[5]
	do := func(words ...string) string {
		t.Helper()
		reply, err := n.Do(t.Context(), words...)
		require.NoError(t, err)
		text, err := reply.ToString()
		require.NoError(t, err)
		return text
	}
	do("CLUSTER", "RESET", "HARD")
	do("CONFIG", "RESETSTAT")
	done := make(chan result, 1)
	go func() { done <- holdfast(t, nil, "load", "--addr", n.Addr, "--timeout", "2m") }()
	require.Eventually(t, func() bool { // it has asked
		return strings.Contains(do("INFO", "commandstats"), "cmdstat_cluster|nodes")
	}, soon, pollEvery)
	do("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	r := <-done
	require.Equal(t, 0, r.code, r)
	require.Equal(t, 1, strings.Count(r.out, " loaded "), r.out)
}

func TestSeveralServers(t *testing.T) {
	t.Parallel()
	one, two := server.Single(t, server.Owned()), server.Replicated(t, 1)
	whole(t, two)
	// The replica is seen through its primary; naming it too changes nothing.
	r := holdfast(t, nil, "load", "--addr", one.Addrs()[0], "--addr", two.Nodes()[0].Addr+","+two.Nodes()[1].Addr)
	require.Equal(t, 0, r.code, r)
	require.Equal(t, 2, strings.Count(r.out, " loaded "), r.out)
	require.Equal(t, 1, strings.Count(r.out, " followed "), r.out)

	require.NoError(t, one.Nodes()[0].Kill())
	r = holdfast(t, nil, "verify", "--addr", one.Addrs()[0]+","+two.Addrs()[0])
	require.Equal(t, 1, r.code, "one cannot be reached")
	require.Contains(t, r.errors, one.Addrs()[0])
	require.Equal(t, 2, strings.Count(r.out, " unchanged "), "the others are looked at all the same: %s", r.out)
}

// Where one server of several refuses, nothing is written at the others.
func TestSeveralServersOfWhichOneRefuses(t *testing.T) {
	t.Parallel()
	free, taken := server.Single(t, server.Owned()), server.Single(t, server.Owned())
	_, err := taken.Nodes()[0].Do(context.Background(), "FUNCTION", "LOAD", otherVersion("99.0.0"))
	require.NoError(t, err)
	where := []string{"load", "--addr", free.Addrs()[0] + "," + taken.Addrs()[0]}
	for _, more := range []string{"", "--dry-run"} {
		r := holdfast(t, nil, strings.Fields(strings.Join(append(where, more), " "))...)
		require.Equal(t, 4, r.code, r)
		require.Contains(t, r.out, "held back")
		require.Contains(t, r.errors, "nothing was written")
	}
	var report struct {
		ExitCode int `json:"exit_code"`
		Changed  bool
	}
	require.NoError(t, json.Unmarshal([]byte(holdfast(t, nil, append(where, "--json")...).out), &report))
	require.Equal(t, 4, report.ExitCode)
	require.False(t, report.Changed)
	require.Equal(t, 3, holdfast(t, nil, "verify", "--addr", free.Addrs()[0]).code)
	require.Equal(t, 0, holdfast(t, nil, append(where, "--force")...).code)
}

func TestRefusalAndForce(t *testing.T) {
	t.Parallel()
	d := server.Single(t, server.Owned())
	bring := func(version string) {
		_, err := d.Nodes()[0].Do(context.Background(), "FUNCTION", "LOAD", "REPLACE", otherVersion(version))
		require.NoError(t, err)
	}
	contract, _, _ := strings.Cut(functions.Version, ".")
	bring(contract + ".999.0")
	for _, command := range []string{"load", "verify"} { // of a release that is rolled back
		r := holdfast(t, nil, command, "--addr", d.Addrs()[0])
		require.Equal(t, 0, r.code, r)
		require.Contains(t, r.out, " newer ")
		require.Contains(t, r.out, contract+".999.0")
	}
	bring("99.0.0")
	r := holdfast(t, nil, "load", "--addr", d.Addrs()[0])
	require.Equal(t, 4, r.code, r)
	require.Contains(t, r.out, "99.0.0")
	require.Contains(t, r.errors, "--force")
	r = holdfast(t, nil, "load", "--addr", d.Addrs()[0], "--force")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, "downgraded")
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	d := server.Single(t, server.WithACL("user deployer on >s3cret -@all +ping +role +function|list +function|load",
		"user reader on >s3cret -@all +ping +role +function|list"))
	where := append(addresses(d), "--user", "deployer")
	r := where.as(t, []string{"HOLDFAST_PASSWORD=s3cret"}, "load")
	require.Equal(t, 0, r.code, r)

	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	r = where.do(t, "verify", "--password-file", file)
	require.Equal(t, 0, r.code, r)

	r = holdfast(t, []string{"HOLDFAST_PASSWORD=s3cret"}, "unload", "--addr", d.Addrs()[0], "--user", "reader")
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.out, "+function|delete", "what is missing is named")
}

func TestSentinelPassword(t *testing.T) {
	t.Parallel()
	d := server.Sentinel(t)
	whole(t, d)
	for _, s := range d.Sentinels() {
		_, err := s.Do(context.Background(), "ACL", "SETUSER", "watcher", "on", ">w4tch", "+@all", "allchannels")
		require.NoError(t, err)
	}
	where := []string{"load", "--addr", strings.Join(d.Addrs(), ","), "--sentinel-master", d.SentinelMaster, "--sentinel-user", "watcher"}
	r := holdfast(t, []string{"HOLDFAST_SENTINEL_PASSWORD=w4tch"}, where...)
	require.Equal(t, 0, r.code, r)
	r = holdfast(t, []string{"HOLDFAST_SENTINEL_PASSWORD=wrong"}, where...)
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "wrong user or password")
	require.Contains(t, r.errors, "HOLDFAST_SENTINEL_PASSWORD")
	run := append([]string{"run", "a"}, append(where[1:], "--", "true")...)
	r = holdfast(t, []string{"HOLDFAST_SENTINEL_PASSWORD=wrong"}, run...)
	require.Equal(t, 77, r.code, r)
	require.Contains(t, r.errors, "check --user")
	require.NotContains(t, r.errors, "holdfast acl", "it lacks no rights")
	for command, code := range map[string]int{"load": 1, "ls": 1, "run": 78} {
		args := append([]string{command}, strings.Fields(strings.Replace(strings.Join(where[1:], " "), d.SentinelMaster, "bogus", 1))...)
		if command == "run" {
			args = append(args, "a", "--", "true")
		}
		r = holdfast(t, []string{"HOLDFAST_SENTINEL_PASSWORD=w4tch"}, args...)
		require.Equal(t, code, r.code, r)
		require.Equal(t, 1, strings.Count(r.errors, "(check --sentinel-master)"), r)
	}
	for command, code := range map[string]int{"load": 1, "ls": 1, "run": 64} {
		args := []string{command, "--addr", d.Nodes()[0].Addr, "--sentinel-master", d.SentinelMaster}
		if command == "run" {
			args = append(args, "a", "--", "true")
		}
		r = holdfast(t, nil, args...)
		require.Equal(t, code, r.code, r)
		require.Contains(t, r.errors, "no Sentinel")
	}

	r = holdfast(t, nil, "load", "--addr", d.Addrs()[0])
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "--sentinel-master")
}

func TestUsage(t *testing.T) {
	r := holdfast(t, nil)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.errors, "Exit codes:")
	for _, help := range [][]string{{"help"}, {"--help"}, {"load", "-h"}} {
		r = holdfast(t, nil, help...)
		require.Equal(t, 0, r.code)
		require.Contains(t, r.out, "Example:")
	}
	commands := regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(holdfast(t, nil, "help").out, -1)
	require.Greater(t, len(commands), 15)
	for _, command := range commands {
		for _, flag := range strings.Split(holdfast(t, nil, "help", command[1]).out, " --") {
			require.LessOrEqual(t, strings.Count(flag, "(default"), 1, "%s --%s", command[1], flag)
		}
	}
	for _, wrong := range [][]string{{"bogus"}, {"load", "extra"}, {"load", "--bogus"}, {"verify", "--force"}, {"load", "--timeout", "-1s"},
		{"load", "--user", "u"}, {"load", "--addr", "a,,b"}, {"load", "--password-file", "/does/not/exist"},
		{"load", "--tls-ca", "/does/not/exist"}, {"load", "--tls-cert", "x"}} {
		r = holdfast(t, nil, wrong...)
		require.Equal(t, 2, r.code, "%v: %v", wrong, r)
		require.NotEmpty(t, r.errors)
	}
	for _, typed := range [][]string{{"load", "--password", "hunter2"}, {"load", "--password=hunter2"}} {
		r = holdfast(t, nil, typed...)
		require.Equal(t, 2, r.code)
		require.NotContains(t, r.errors, "hunter2", "a password is not repeated")
		require.Contains(t, r.errors, "HOLDFAST_PASSWORD")
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	dead, hanging := server.Single(t, server.Owned()), server.Single(t, server.Owned())
	require.NoError(t, dead.Nodes()[0].Kill())
	require.NoError(t, hanging.Nodes()[0].Pause())
	for d, says := range map[*server.Deployment]string{dead: "check --addr", hanging: "it hangs"} {
		for _, command := range []string{"load", "verify", "unload", "version"} {
			r := holdfast(t, nil, command, "--addr", d.Addrs()[0], "--timeout", "2s")
			require.Equal(t, 1, r.code, r)
			require.Contains(t, r.errors, d.Addrs()[0])
			require.Contains(t, r.errors, says)
		}
	}
	require.NoError(t, hanging.Nodes()[0].Resume())

	denies, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer denies.Close()
	go func() { // a server in protected mode, which says why; rueidis drops it
		for conn, err := denies.Accept(); err == nil; conn, err = denies.Accept() {
			_, _ = conn.Write([]byte("-DENIED Redis is running in protected mode\r\n"))
			conn.Close()
		}
	}()
	r := at(denies.Addr().String()).do(t, "load")
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "protected mode")
	require.Contains(t, r.errors, "maxclients", "the server ends connections then too")
}
