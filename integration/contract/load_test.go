// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// The replica has the same hash, with the same end.
func TestReplicaHasTheSameLock(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Replicated(t, 1, server.WithFlavour(f)))
		replica := dial(t, b.d.Nodes()[1].Addr)
		k := b.key("k")
		steps := []step{
			{functions.AcquireReentrant, []string{"a", long, "g"}, []any{1, token, 1}},
			{functions.AcquireReentrant, []string{"a", long, "h"}, []any{1, token, 2}},
			{functions.Wait, []string{"b", long, "CHANNEL", "ch"}, inLine("a", 1)},
			{functions.Wait, []string{"c", long, "MINHOLD", long}, inLine("a", 2)},
			{functions.Leave, []string{"b"}, 1},
			{functions.Renew, []string{"a", long}, token},
			{functions.Break, []string{"REASON", "why"}, []any{1, "a", token}},
			{functions.Renew, []string{"c", long}, token},
			{functions.Wait, []string{"d", long, "SHARED"}, inLine("c", 1)},
			{functions.Wait, []string{"e", long, "SHARED", "MINHOLD", long}, inLine("c", 2)},
			{functions.Break, []string{"FORGET"}, []any{1, "c", token}},
			{functions.Renew, []string{"e", long}, token},
			{functions.Release, []string{"e"}, 1},
			{functions.Break, []string{"FORGET"}, []any{1, "", token}},
			{functions.Acquire, []string{"x", long}, token},
			{functions.Wait, []string{"d", long, "VALUE"}, inLine("x", 1)},
			{functions.Finish, []string{"x", "\x00v", nearYear}, 1},
			{functions.Wait, []string{"d", long, "VALUE"}, []any{0, pttl, "x", 0, functions.WhyDone, "\x00v"}},
			{functions.Break, []string{"FORGET"}, []any{1, "x", token}},
			{functions.Acquire, []string{"c", long, "MINHOLD", long}, token},
		}
		for i, s := range steps {
			want(t, b.c.run(s, k), s.reply)
			want(t, b.c.do("WAIT", "1", "10000"), 1)
			want(t, replica.do("PEXPIRETIME", k), b.c.do("PEXPIRETIME", k))
			if got, here := replica.content(k), b.content(k); got != here {
				t.Fatalf("after step %d, %s: the replica has %s, the primary %s", i, s.function, got, here)
			}
		}
		want(t, replica.do("FCALL_RO", functions.Inspect, "1", k), []any{1, "c", 1, token, left, 0, functions.WhyHeld})
		want(t, replica.fcall(functions.Acquire, k, "x", long), prefix("READONLY "))
		want(t, b.call(functions.Release, k, "c"), 1)
		want(t, b.c.do("WAIT", "1", "10000"), 1)
		want(t, replica.do("FCALL_RO", functions.Inspect, "1", k), []any{0, "c", 0, token, left, 0, functions.WhyKept})
		want(t, b.call(functions.Break, k, "FORGET"), []any{1, "c", token})
		want(t, b.c.do("WAIT", "1", "10000"), 1)
		want(t, replica.do("EXISTS", k), 0)
	})
}
