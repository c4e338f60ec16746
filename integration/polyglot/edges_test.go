package polyglot

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script runs a few lines of one of the languages, with HOST and PORT of the server behind them.
func (b *bed) script(t *testing.T, language, text string) string {
	t.Helper()
	all := workers(t)
	at := slices.IndexFunc(all, func(w worker) bool { return w.name == language })
	if at < 0 {
		t.Skipf("no %s here", language)
	}
	option := map[string]string{"python": "-c", "ruby": "-e"}[language]
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, all[at].argv[0], option, text, b.host, b.port)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// A child of fork that ends inside the block leaves its parent's lock alone.
func TestAChildGivesNothingBack(t *testing.T) {
	for language, text := range map[string]string{
		"python": `
import os, sys
sys.path.insert(0, "python")
import redis, holdfast
with holdfast.lock(redis.Redis(sys.argv[1], int(sys.argv[2]), retry=None), "forked-python") as lock:
    if os.fork() == 0:
        sys.exit()
    os.wait()
    print(lock._redis.execute_command("FCALL", "holdfast_inspect", 1, lock.key)[0])
`,
		"ruby": `
require "./ruby/holdfast"
Holdfast.lock(Redis.new(host: ARGV[0], port: ARGV[1].to_i), "forked-ruby") do |lock|
  exit unless fork
  Process.wait
  puts Redis.new(host: ARGV[0], port: ARGV[1].to_i).call("FCALL", "holdfast_inspect", 1, lock.key)[0]
end
`,
	} {
		t.Run(language, func(t *testing.T) { require.Equal(t, "1\n", newBed(t).script(t, language, text)) })
	}
}

// A wait that is thrown out of leaves the line, and says what it was thrown out by.
func TestAWaitIsTimedOutInRuby(t *testing.T) {
	b := newBed(t)
	l, err := b.c.Acquire(t.Context(), "late")
	require.NoError(t, err)
	require.Equal(t, "Timeout::Error\n", b.script(t, "ruby", `
require "./ruby/holdfast"
require "timeout"
begin
  Timeout.timeout(0.7) { Holdfast.lock(Redis.new(host: ARGV[0], port: ARGV[1].to_i), "late") { } }
rescue Timeout::Error, Holdfast::Lost => e
  puts e.class
end
`))
	b.waits(t, "late", 0)
	require.NoError(t, l.Release(t.Context()))
}

// The owner of a lock may be any bytes.
func TestAHolderIsNoText(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		m := do(t, b.node, "FCALL", "holdfast_acquire", "1", "lock:"+w.name, "\xff\xfe", "60000")
		require.NoError(t, (&m).Error())
		b.hold(t, w, w.name, "20000", "300").expect("busy")
	})
}

// What others publish on a waiter's channel gives it nothing, and does not end its wait.
func TestNoiseOnTheChannel(t *testing.T) {
	each(t, func(t *testing.T, b *bed, w worker) {
		l, err := b.c.Acquire(t.Context(), w.name)
		require.NoError(t, err)
		r := b.hold(t, w, w.name, "20000", forEver)
		b.waits(t, w.name, 1)
		m := do(t, b.node, "PUBSUB", "SHARDCHANNELS", "lock:{lock:"+w.name+"}:*")
		channels, err := (&m).AsStrSlice()
		require.NoError(t, err)
		for _, channel := range channels { // none where it polls
			owner := channel[strings.LastIndex(channel, ":")+1:]
			for _, noise := range []string{"", "look " + owner, "1 2 3", "x y z 32 " + owner + " lock:" + w.name,
				"9007199254740991 1 1 32 " + owner + " lock:other", "9007199254740991 1 1 5 other lock:" + w.name,
				"9007199254740991 1 1 32 " + owner + " lock:" + w.name} {
				do(t, b.node, "SPUBLISH", channel, noise)
			}
		}
		info, err := b.c.Inspect(t.Context(), w.name)
		require.NoError(t, err)
		require.Equal(t, l.Owner(), info.Holder.Owner)
		require.NoError(t, l.Release(t.Context()))
		require.Greater(t, r.held(), l.Fence())
		r.release()
	})
}
