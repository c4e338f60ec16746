// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// demo prepares a run of the built program on a server.
func demo(t *testing.T, url string, args ...string) (cmd *exec.Cmd, errs *strings.Builder) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "demo")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd, errs = exec.CommandContext(t.Context(), program, args...), &strings.Builder{}
	cmd.Env = append(os.Environ(), "HOLDFAST_REDIS="+url)
	cmd.Stderr = errs
	return cmd, errs
}

// shared gives a server that is not the demo's own, its URL, and a key on it.
func shared(t *testing.T) (redis rueidis.Client, url string) {
	t.Helper()
	d := server.Single(t, server.Owned())
	redis, err := rueidis.NewClient(d.ClientOption())
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	require.NoError(t, redis.Do(t.Context(), redis.B().Set().Key("others").Value("untouched").Build()).Error())
	return redis, "redis://" + d.Addrs()[0]
}

func keys(t *testing.T, redis rueidis.Client) []string {
	t.Helper()
	keys, err := redis.Do(t.Context(), redis.B().Keys().Pattern("*").Build()).AsStrSlice()
	require.NoError(t, err)
	return keys
}

func TestDemo(t *testing.T) {
	redis, url := shared(t)
	cmd, errs := demo(t, url, "-lease", "3s")
	timers := testbed.Late()
	out, err := cmd.Output()
	text, late := string(out), timers()
	behind := regexp.MustCompile(`(?m)^FALSE .* not before and within `).FindAllString(text, -1)
	if len(behind) > 0 && len(behind) == strings.Count(text, "\nFALSE ") && late > 50*time.Millisecond {
		t.Skipf("plain timers were late by %v, and so was somebody who waited:\n%s", late, text)
	}
	require.NoError(t, err, "%s\n%s", text, errs)
	t.Log(text)

	require.Regexp(t, `(?m)^sale +stock +buyers +sold +oversold +next holder +stale writes +time$`, text)
	over := regexp.MustCompile(`(?m)^no lock +300 +450 +(\d+) +(\d+) +- +- +[\d.]+ s$`).FindStringSubmatch(text)
	require.NotNil(t, over, text)
	require.NotEqual(t, "0", over[2])
	require.Regexp(t, `(?m)^Holdfast +300 +450 +300 +0 +- +- +[\d.]+ s$`, text)
	require.Regexp(t, `(?m)^Holdfast, holder killed +300 +450 +300 +0 +lease end [+-][\d.]+ ms +- +[\d.]+ s$`, text)
	require.Regexp(t, `(?m)^Holdfast, holder paused +300 +450 +300 +0 +lease end [+-][\d.]+ ms +refused +[\d.]+ s$`, text)
	require.Equal(t, 14, strings.Count(text, "\ntrue "), text)
	require.NotContains(t, text, "FALSE")
	require.Contains(t, errs.String(), "HOLDFAST_REDIS at ", "says which server it uses")

	require.Equal(t, []string{"others"}, keys(t, redis), "it leaves no key behind, and those of others alone")
}

// An interrupt in the middle of a sale ends all processes and removes all keys.
func TestInterrupt(t *testing.T) {
	redis, url := shared(t)
	cmd, errs := demo(t, url)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	var victim int
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), " paused process %d while", &victim); err == nil {
			require.NoError(t, cmd.Process.Signal(os.Interrupt))
		}
	}
	require.NotZero(t, victim)
	require.Error(t, cmd.Wait())
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), errs.String())
	require.Contains(t, errs.String(), "interrupted")
	require.ErrorIs(t, syscall.Kill(victim, 0), syscall.ESRCH, "the paused process is gone too")
	require.Equal(t, []string{"others"}, keys(t, redis))
}
