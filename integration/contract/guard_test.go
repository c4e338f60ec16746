// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

const guard = long // as short as it may be

// forget makes the server's memory begin anew.
func (b *bed) forget() {
	b.tb.Helper()
	b.load()
	b.memory()
}

// memory is what the server says of its memory.
func (b *bed) memory(args ...string) []string {
	b.tb.Helper()
	got := b.c.do(append([]string{"FCALL", functions.Memory, "0"}, args...)...)
	want(b.tb, got, []any{anything, anything, anything})
	var texts []string
	for _, text := range got.([]any) {
		texts = append(texts, text.(string))
	}
	return texts
}

// age makes the server's memory as old as the clock.
func (b *bed) age() {
	b.tb.Helper()
	m := b.memory()
	want(b.tb, b.memory(m[0], m[1], "1")[2], "1")
}

// guarded is a promise of a server whose memory has just begun.
func guarded(promise func(b *bed, k string)) func(b *bed, k string) {
	return func(b *bed, k string) {
		b.forget()
		promise(b, k)
	}
}

var notYet = []any{0, left, "", 0, functions.WhySettling}

func youngMemory(b *bed, k string) {
	tries := []step{
		{functions.Acquire, []string{"a", long, "GUARD", guard}, token},
		{functions.AcquireReentrant, []string{"a", long, "h", "GUARD", guard}, []any{1, token, 1}},
		{functions.Wait, []string{"a", long, "GUARD", guard}, token},
		{functions.Wait, []string{"a", long, "HOLD", "h", "GUARD", guard}, []any{1, token, 1}},
	}
	for _, try := range tries {
		refused := notYet
		if try.function == functions.Wait {
			refused = append(slices.Clone(notYet), serverMS, 0, 0)
		}
		want(b.tb, b.c.run(try, k), refused)
		b.expectFree(k)
	}
	want(b.tb, b.call(functions.Wait, k, "a", long, "GUARD", guard, "MAXWAIT", "1000"), []any{0, left, "", -1, functions.WhySettling, serverMS, 0, 0})
	want(b.tb, b.call(functions.AcquireReentrant, k, "a", long, "h"), []any{1, token, 1}) // without a guard
	want(b.tb, b.call(functions.AcquireReentrant, k, "a", long, "i", "GUARD", guard), []any{0, left, "a", 0, functions.WhySettling})
	want(b.tb, b.call(functions.Wait, k, "a", long, "HOLD", "i", "GUARD", guard).([]any)[3], 0)
	want(b.tb, b.call(functions.Release, k, "a", "ALL"), 1)
	for _, try := range tries {
		b.age()
		want(b.tb, b.c.run(try, k), try.reply)
		b.wait(k, "b", "", 1)
		b.forget()
		b.call(functions.Break, k)
		want(b.tb, b.call(functions.Acquire, k, "c", long), []any{0, left, "", 1, functions.WhySettling})
		b.c.do("DEL", k)
	}
}

func straightDown(b *bed, k string) {
	for range 2 { // the lengths are known after the first time
		want(b.tb, b.call(functions.Acquire, k, "a", long, "GUARD", guard), notYet)
	}
	b.age()
	b.take(k, "a", "700000")
	want(b.tb, b.call(functions.Release, k, "a"), 1)
	want(b.tb, b.call(functions.Acquire, k, "a", "700000", "GUARD", guard), prefix("HFARG GUARD must not be less than ttl_ms"))
	want(b.tb, b.call(functions.Acquire, k, "a", long, "GUARD", guard), token)
	want(b.tb, b.call(functions.Renew, k, "a", "10000"), token)
	want(b.tb, b.c.do("PTTL", k), whole)
	b.wait(k, "b", "", 1)
	b.forget()
	want(b.tb, b.call(functions.Release, k, "a"), 1)
	want(b.tb, b.call(functions.Acquire, k, "c", long), []any{0, left, "", 1, functions.WhySettling})
}

// A replica that may be written to, or says that it is called like a field of INFO, is no new memory.
func TestAMemoryIsThePrimarys(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		one := []server.Option{server.Owned(), server.WithFlavour(f)}
		b, other := lay(t, server.Single(t, one...)), server.Single(t, one...)
		k := b.key("k")
		b.age()
		host, port, _ := strings.Cut(b.addr, ":")
		replica := dial(t, other.Addrs()[0])
		for _, command := range [][]string{{"CONFIG", "SET", "replica-announce-ip", "master_replid:abcdef0"}, {"CONFIG", "SET", "replica-read-only", "no"}, {"REPLICAOF", host, port}} {
			want(t, replica.do(command...), "OK")
		}
		eventually(t, "it is attached", func() bool {
			return strings.Contains(b.c.do("INFO", "replication").(string), "ip=master_replid:abcdef0")
		})
		if id := b.memory()[1]; len(id) != 40 {
			t.Fatalf("the replication id is said to be %q", id)
		}
		eventually(t, "the replica follows", func() bool {
			return strings.Contains(replica.do("INFO", "replication").(string), "master_link_status:up")
		})
		for range 3 {
			want(t, replica.do("FCALL", functions.Acquire, "1", k, "a", "1", "GUARD", "1"), []any{0, 1, "", 0, functions.WhySettling})
		}
	})
}

// The pause goes by also while the lock is held, and whoever asks for it lets it begin.
func pauseBegins(b *bed, k string) {
	b.take(k, "a", long)
	for _, call := range [][]string{{functions.Acquire, "b", long, "GUARD", guard}, {functions.Wait, "b", long, "GUARD", guard},
		{functions.Renew, "b", long, "RAISE", "1"}, {functions.Renew, "a", long}} {
		b.load()
		b.call(call[0], k, call[1:]...)
		now := b.now()
		if since := number(b.memory()[2]); since > now {
			b.tb.Fatalf("%s did not let a memory begin: it is since %d, and before it was %d", call[0], since, now)
		}
	}
}

// A lock keeps the longest guard and the longest lease that was asked for, and nobody's call fails
// because of another one's argument.
func longestGuard(b *bed, k string) {
	for _, longest := range []string{functions.Acquire, functions.Renew} {
		b.take(k, "a", long)
		want(b.tb, b.call(functions.Wait, k, "b", "200", "GUARD", "250"), inLine("a", 1))
		want(b.tb, b.call(longest, k, "a", "700000"), token)
		want(b.tb, b.call(functions.Release, k, "a"), 1)
		b.age()
		want(b.tb, b.call(functions.Inspect, k).([]any)[1], "") // only a call serves the line
		b.forget()
		want(b.tb, b.call(functions.Acquire, k, "c", "200"), []any{0, between{650_000, 700_000}, "", 1, functions.WhySettling})
		want(b.tb, b.call(functions.Wait, k, "d", "200", "MAXWAIT", "1000"), []any{0, between{650_000, 700_000}, "", -2, functions.WhySettling, serverMS, token, 0})
		b.c.do("DEL", k)
	}
}

func TestAMemoryIsCarriedOverALoad(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.age()
		before := b.memory()
		b.forget()
		if after := b.memory(); after[0] != before[0] || after[1] != before[1] || after[2] == before[2] {
			t.Fatalf("%v, and after FUNCTION LOAD REPLACE %v", before, after)
		}
		for _, wrong := range [][]string{{"f00", before[1], "1"}, {before[0], "f00", "1"}, {before[0], before[1], "9007199254740991"}} {
			b.memory(wrong...)
			want(t, b.call(functions.Acquire, k, "a", long, "GUARD", guard), notYet)
		}
		for _, bad := range [][]string{{before[0]}, {before[0], before[1]}, {before[0], before[1], "0"}, {before[0], before[1], "x"}} {
			want(t, b.c.do(append([]string{"FCALL", functions.Memory, "0"}, bad...)...), prefix("HFARG "))
		}
		user := b.as(append(aclLine(t), "+info"))
		call := append([]string{"FCALL", functions.Memory, "0"}, before...)
		want(t, user.do(call...), prefix("HFARG since_us is only for those who may use FUNCTION LOAD"))
		if got := b.memory(before...); got[2] != "1" {
			t.Fatalf("carried %v, and it is %v", before, got)
		}
		want(t, b.call(functions.Acquire, k, "a", long, "GUARD", guard), token)
	}, server.Owned())
}

// A history that ends is noticed at once, however lately somebody looked.
func TestAMemoryEndsWithItsHistory(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.age()
		want(t, b.call(functions.Acquire, k, "a", long, "GUARD", guard), token)
		b.c.do("DEL", k)
		want(t, b.c.do("DEBUG", "CHANGE-REPL-ID"), "OK")
		b.pause(11)
		want(t, b.call(functions.Acquire, k, "b", long, "GUARD", guard), notYet)
	}, server.Owned())
}
