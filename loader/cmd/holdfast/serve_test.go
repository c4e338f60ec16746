// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// serving starts a command that serves HTTP at a free port, and returns where, and what it printed
// before.
func serving(t *testing.T, env []string, args ...string) (url, said string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(stderr)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		rest, _ := io.ReadAll(lines)
		_ = cmd.Wait()
		require.Equal(t, 0, cmd.ProcessState.ExitCode(), "%s", rest)
	})
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, said)
		if _, at, found := strings.Cut(line, "listening on "); found {
			return strings.TrimSpace(at), said
		}
		said += line
	}
}

func get(t *testing.T, url string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	reply, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return reply.StatusCode, string(text)
}

var sampleLine = regexp.MustCompile(`^(holdfast_server_\w+)(?:\{(?:lock|cause)="((?:[^"\\\n]|\\["\\n])*)"\})? (\d+(?:\.\d+)?(?:e\+\d+)?)$`)

// samples reads the exposition format, and refuses what is none.
func samples(t *testing.T, text string) (values map[string]string, families map[string]bool) {
	t.Helper()
	values, families = map[string]string{}, map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if words := strings.Fields(line); words[0] == "#" {
			families[words[2]] = true
			continue
		}
		parts := sampleLine.FindStringSubmatch(line)
		require.NotNil(t, parts, line)
		require.True(t, families[parts[1]], "no HELP and TYPE before %s", line)
		name := strings.TrimPrefix(parts[1], "holdfast_server_") + " " + parts[2]
		require.NotContains(t, values, name, "twice")
		values[name] = parts[3]
	}
	return values, families
}

func TestTheExporter(t *testing.T) {
	d, where := loaded(t)
	c, other := open(t, d.ClientOption(), client.Config{}), open(t, d.ClientOption(), client.Config{})
	for _, name := range []string{"order:1", "order:2", "report", "q\"\\:1", "\xff:1", "\xfe:1"} {
		_, err := c.Acquire(t.Context(), name)
		require.NoError(t, err)
	}
	lock, err := c.Acquire(t.Context(), "stock:7")
	require.NoError(t, err)
	got := wait(t, other, "stock:7", 1)
	url, _ := serving(t, nil, append(where, "exporter", "--listen", "127.0.0.1:0", "--every", "50ms", "--groups", "5")...)
	until := func(want map[string]string) (families map[string]bool) {
		t.Helper()
		var values map[string]string
		require.Eventually(t, func() bool {
			code, text := get(t, url+"/metrics")
			if code != http.StatusOK {
				return false
			}
			values, families = samples(t, text)
			for name, value := range want {
				if values[name] != value {
					return false
				}
			}
			return true
		}, soon, pollEvery, "%v", want)
		return families
	}
	until(map[string]string{"held order": "2", "held (none)": "1", `held q\"\\`: "1", "held stock": "1", "held ?": "2",
		"waiting stock": "1", "waiting order": "0", "look_complete ": "1", "lost_total broken": "0", "hand_overs_total ": "0"})

	require.NoError(t, lock.Release(t.Context()))
	<-got
	until(map[string]string{"held stock": "1", "waiting stock": "0", "hand_overs_total ": "1"})
	_, err = c.Acquire(t.Context(), "a fifth:group")
	require.NoError(t, err)
	r := holdfast(t, nil, append(where, "break", "stock:7", "--reason", "it hangs", "--yes")...)
	require.Equal(t, 0, r.code, r)
	families := until(map[string]string{"held (other)": "1", "held stock": "0", "lost_total broken": "1", "lost_total expired": "0"})
	exporterPages(t, families)

	require.NoError(t, d.Nodes()[0].Kill())
	until(map[string]string{"look_complete ": "0", "held order": "", "lost_total broken": "1"})
}

// A primary that joins a Cluster is looked at soon, though no call of the exporter leads there.
func TestTheExporterMeetsANewPrimary(t *testing.T) {
	t.Parallel()
	d := server.Cluster(t)
	require.Equal(t, 0, addresses(d).do(t, "load").code)
	url, _ := serving(t, nil, append(addresses(d), "exporter", "--listen", "127.0.0.1:0", "--every", "50ms")...)
	extra := server.Single(t, server.Owned(), server.WithConfig("cluster-enabled", "yes")).Nodes()[0]
	do := func(n *server.Node, words ...string) string {
		reply, err := n.Do(t.Context(), words...)
		require.NoError(t, err, words)
		text, err := reply.ToString()
		require.NoError(t, err)
		return text
	}
	id := do(extra, "CLUSTER", "MYID")
	host, port, _ := net.SplitHostPort(extra.Addr)
	do(d.Nodes()[0], "CLUSTER", "MEET", host, port)
	all := append([]*server.Node{extra}, d.Nodes()...)
	seen := func(line string) {
		for _, n := range all {
			require.Eventually(t, func() bool { return regexp.MustCompile(id + line).MatchString(do(n, "CLUSTER", "NODES")) }, soon, pollEvery)
		}
	}
	seen(".*master") // one that was only heard of is no target
	for _, n := range all[:4] {
		do(n, "CLUSTER", "SETSLOT", "0", "NODE", id)
	}
	seen(".* connected 0\n")
	do(extra, "FUNCTION", "LOAD", functions.Source)
	require.Eventually(t, func() bool { // it takes a moment to believe that it is in the Cluster
		_, err := extra.Do(t.Context(), "FCALL", "holdfast_acquire", "1", "lock:{06S}", "owner", "600000") // of slot 0
		return err == nil
	}, soon, pollEvery)
	require.Eventually(t, func() bool {
		_, metrics := get(t, url+"/metrics")
		return strings.Contains(metrics, "look_complete 1\n") && strings.Contains(metrics, `held{lock="(none)"} 1`)
	}, soon, pollEvery)
}

// exporterPages compares the exporter's metrics with the pages, the alerts and the panels about them.
func exporterPages(t *testing.T, families map[string]bool) {
	t.Helper()
	name := regexp.MustCompile(`\bholdfast_server_\w+`)
	for _, file := range []string{"../../../docs/exporter.md", "../../../docs/exporter.json"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		used := map[string]bool{}
		for _, metric := range name.FindAllString(string(text), -1) {
			require.True(t, families[metric], "%s: there is no %s", file, metric)
			used[metric] = true
		}
		require.Equal(t, families, used, file)
	}
	text, err := os.ReadFile("../../../docs/exporter.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct{ Title, Description string }
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	for _, p := range dashboard.Panels {
		require.Contains(t, p.Description, "Do: ", p.Title)
	}

	// The client's metrics have the same words.
	text, err = os.ReadFile("../../../docs/observing.md")
	require.NoError(t, err)
	for _, cause := range locks.Causes {
		require.Regexp(t, "`end` and `cause`:[^-]*`"+string(cause)+"`", string(text))
	}
	require.Regexp(t, "`Group`[^-]*adds `lock`", string(text))
}

func TestThePage(t *testing.T) {
	d, where := loaded(t)
	c := open(t, d.ClientOption(), client.Config{Label: "<b>nightly</b>"})
	lock, err := c.Acquire(context.Background(), "report")
	require.NoError(t, err)
	url, said := serving(t, nil, append(where, "ui", "--listen", "127.0.0.1:0", "--every", "50ms")...)
	require.Empty(t, said, "no token on the loopback")
	look := func() (look locks.Look) {
		t.Helper()
		code, text := get(t, url+"/look")
		require.Equal(t, http.StatusOK, code, text)
		require.NoError(t, json.Unmarshal([]byte(text), &look))
		return look
	}
	require.Eventually(t, func() bool { code, _ := get(t, url+"/look"); return code == http.StatusOK }, soon, pollEvery)
	require.Equal(t, decode[listed](t, holdfast(t, nil, append(where, "ls", "--json")...)).Locks[0].Who, look().Locks[0].Who)
	_, page := get(t, url)
	for _, file := range []string{"page.js", "style.css"} {
		require.Contains(t, page, file)
		code, _ := get(t, url+"/"+file)
		require.Equal(t, http.StatusOK, code, file)
	}
	code, _ := get(t, url+"/look", "Host", "evil.example:80")
	require.Equal(t, http.StatusForbidden, code, "another site's name for this machine")
	for host, want := range map[string]int{"localhost": 200, "[::1]": 200, "::1": 403, "evil.example": 403, "localhost:evil": 403} {
		code, _ = get(t, url+"/look", "Host", host) // of port 80, which a browser leaves out
		require.Equal(t, want, code, host)
	}

	r := holdfast(t, nil, append(where, "break", "report", "--reason", "it hangs", "--yes")...)
	require.Equal(t, 0, r.code, r)
	require.Eventually(t, func() bool { return len(look().Losses) == 1 }, soon, pollEvery)
	lost := look().Losses[0]
	require.Equal(t, []any{"report", lock.Fence(), locks.CauseBroken}, []any{lost.Name, lost.Token, lost.Cause})
	require.Contains(t, lost.Reason, "it hangs")

	for _, at := range []struct{ listen, token string }{
		{"0.0.0.0:0", "s3cret"}, {"0.0.0.0:0", ""}, {"127.0.0.1:0", "s3cret"},
	} {
		token := at.token
		url, said := serving(t, []string{"HOLDFAST_UI_TOKEN=" + token + "\n"}, append(where, "ui", "--listen", at.listen)...)
		if token == "" {
			_, token, _ = strings.Cut(strings.TrimSpace(said), "the token is ")
		} else {
			require.NotContains(t, said, token)
		}
		url = strings.Replace(strings.Replace(url, "[::]", "127.0.0.1", 1), "0.0.0.0", "127.0.0.1", 1)
		for _, wrong := range []string{"", "Bearer ", "Bearer wrong", token} {
			code, text := get(t, url+"/look", "Authorization", wrong)
			require.Equal(t, http.StatusUnauthorized, code, "%q: %s", wrong, text)
		}
		require.Eventually(t, func() bool {
			code, _ := get(t, url+"/look", "Authorization", "Bearer "+token)
			return code == http.StatusOK
		}, soon, pollEvery)
	}
}
