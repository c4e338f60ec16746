// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

const page = "../../../docs/command.md"

var (
	durations = regexp.MustCompile(`\b(\d+m\d\ds|\d+h\d\dm|\d+(\.\d+)?m?s)\b`)
	numbers   = regexp.MustCompile(`\d+`)
	servers   = regexp.MustCompile(`(?m)^(redis|valkey) `)
	risks     = regexp.MustCompile(`(?m)^ +risk:.*\n`) // of this server
	blanks    = regexp.MustCompile(` +`)
)

// form is a text without what differs from run to run.
func form(text string) string {
	text = servers.ReplaceAllString(text, "server ")
	text = durations.ReplaceAllString(risks.ReplaceAllString(text, ""), "D")
	return blanks.ReplaceAllString(numbers.ReplaceAllString(text, "N"), " ")
}

// The samples of the page, run one after the other on one server, print what the page says.
func TestThePageIsTrue(t *testing.T) {
	t.Parallel()
	d := server.Single(t, server.Owned())
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for _, command := range strings.Fields("load verify version unload ls inspect queue break watch bench acl completion") {
		require.Regexp(t, `(?m)^## .*\b`+command+`\b`, string(text))
	}
	samples := regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.GreaterOrEqual(t, len(samples), 7)
	for i, sample := range samples {
		if i == 1 { // the library is there now
			listen(t, d, "lock:web-7")
			for _, call := range []string{"acquire 1 lock:order:42 web-42 600000", "acquire 1 lock:order:43 web-43 600000",
				"wait 1 lock:order:42 web-7 30000 CHANNEL lock:web-7"} {
				_, err := d.Nodes()[0].Do(context.Background(), strings.Split("FCALL holdfast_"+call, " ")...)
				require.NoError(t, err)
			}
		}
		for _, run := range strings.Split(sample[1], "$ holdfast ")[1:] {
			typed, says, _ := strings.Cut(run, "\n")
			cmd := exec.Command("sh", "-c", `exec "$0" `+typed, binary)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_ADDR=" + d.Addrs()[0]}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", typed, out)
			require.Equal(t, form(says), form(string(out)), typed)
		}
	}
}

// listen subscribes to a channel for as long as the test runs.
func listen(t *testing.T, d *server.Deployment, channel string) {
	t.Helper()
	option := d.ClientOption()
	option.DisableCache = true
	c, err := rueidis.NewClient(option)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done; c.Close() })
	go func() {
		defer close(done)
		_ = c.Receive(ctx, c.B().Ssubscribe().Channel(channel).Build(), func(rueidis.PubSubMessage) {}) // ends with ctx
	}()
	require.Eventually(t, func() bool {
		counts, err := c.Do(ctx, c.B().PubsubShardnumsub().Channel(channel).Build()).AsIntMap()
		return err == nil && counts[channel] == 1
	}, soon, pollEvery)
}

// Each alert of the pages is quiet, and fires, when testdata/alerts.yaml says so.
func TestTheAlertsFire(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool")
	}
	cases, err := os.ReadFile("testdata/alerts.yaml")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "alerts.yaml"), cases, 0o600))
	for _, name := range []string{"observing", "exporter"} {
		text, err := os.ReadFile("../../../docs/" + name + ".md")
		require.NoError(t, err)
		rules := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
		require.NotNil(t, rules, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), rules[1], 0o600))
		for _, rule := range regexp.MustCompile(`- alert: (\w+)`).FindAllSubmatch(rules[1], -1) {
			require.Contains(t, string(cases), `"`+string(rule[1])+`"`, "it never fires")
		}
	}
	cmd := exec.CommandContext(t.Context(), promtool, "test", "rules", "alerts.yaml")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
