package contract

import (
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

func guarded(t *testing.T, test func(b *bed, k string)) {
	t.Helper()
	each(t, func(_ *testing.T, b *bed) {
		b.forget()
		test(b, b.key("k"))
	}, server.Owned())
}

var (
	left   = between{1, 600_000}
	yes    = []any{1, token, 600000, 1, 1}
	notYet = []any{0, left, "", 0}
)

func TestAYoungMemoryGrantsNothingGuarded(t *testing.T) {
	guarded(t, func(b *bed, k string) {
		tries := [][]string{
			{functions.Acquire, "a", long, "1", guard}, {functions.AcquireReentrant, "a", long, "h", guard},
			{functions.Wait, "a", long, "", "1", long, "", guard}, {functions.Wait, "a", long, "", "1", long, "h", guard},
		}
		for _, try := range tries {
			refused := notYet
			if try[0] == functions.Wait {
				refused = []any{0, left, "", 0, between{1, 1 << 50}, 0, 0}
			}
			want(b.tb, b.call(try[0], k, try[1:]...), refused)
			b.expectFree(k)
		}
		b.take(k, "a", long)
		want(b.tb, b.call(functions.Release, k, "a"), []any{1, 0})
		b.age()
		for _, try := range tries {
			want(b.tb, b.call(try[0], k, try[1:]...), yes)
			want(b.tb, b.call(functions.Release, k, "a", "*"), []any{1, 0})
			b.expectFree(k)
		}
	})
}

func TestAMemoryGrowsOld(t *testing.T) {
	guarded(t, func(b *bed, k string) {
		const short = "300"
		got := b.call(functions.Acquire, k, "a", short, "1", short).([]any)
		for got[0] == int64(0) {
			want(b.tb, got, []any{0, between{1, 300}, "", 0})
			got = b.call(functions.Acquire, k, "a", short, "1", short).([]any)
		}
		want(b.tb, got, []any{1, token, 300, 1, 1})
	})
}

func TestGuardedLocksThatAreRememberedGoOn(t *testing.T) {
	guarded(t, func(b *bed, k string) {
		b.age()
		for _, hold := range []string{"", "h"} {
			want(b.tb, b.call(functions.Wait, k, "a", long, "", "1", long, hold, guard), yes)
			b.forget()
			want(b.tb, b.call(functions.Renew, k, "a", long), yes)
			want(b.tb, b.call(functions.Wait, k, "a", long, "", "1", long, hold, guard), yes)
			want(b.tb, b.call(functions.Release, k, "a", hold), []any{1, 0})
			want(b.tb, b.call(functions.Acquire, k, "b", long, "1", guard), notYet)
			b.age()
		}
	})
}

// A line that the server remembers may have moved on before the failover.
func TestAYoungMemoryHandsNothingOver(t *testing.T) {
	ends := map[string]func(b *bed, k string){
		"release": func(b *bed, k string) { want(b.tb, b.call(functions.Release, k, "a"), []any{1, 0}) },
		"leave":   func(b *bed, k string) { want(b.tb, b.call(functions.Leave, k, "a"), []any{1}) },
		"break":   func(b *bed, k string) { want(b.tb, b.call(functions.Break, k), []any{1, "a", token}) },
		"lease":   func(b *bed, k string) { b.end(k) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			guarded(t, func(b *bed, k string) {
				b.age()
				want(b.tb, b.call(functions.Acquire, k, "a", long, "1", guard), yes)
				b.wait(k, "b", "", 1)
				b.wait(k, "c", "", 2)
				b.forget()
				end(b, k)
				want(b.tb, b.call(functions.Wait, k, "b", long, ""), []any{0, left, "", 1, anything, token, 0})
				want(b.tb, b.call(functions.Wait, k, "d", long, ""), []any{0, left, "", 3, anything, token, 0})
				want(b.tb, b.call(functions.Acquire, k, "e", long), []any{0, left, "", 3})
				want(b.tb, b.call(functions.Renew, k, "a", long), []any{0, left, "", 3})
				want(b.tb, b.c.do("PTTL", k), between{59_000, 660_000})
				b.age()
				want(b.tb, b.call(functions.Wait, k, "c", long, ""), []any{0, between{1, 2000}, "b", 1, anything, token, 0})
				want(b.tb, b.call(functions.Renew, k, "b", long), yes)
				b.expectLock(k, "b", 1, 2)
			})
		})
	}
}

// A lock keeps its guard, whoever took it: also one that only its waiters want guarded.
func TestAWaitersGuardIsTheLocks(t *testing.T) {
	guarded(t, func(b *bed, k string) {
		b.take(k, "a", long)
		want(b.tb, b.call(functions.Wait, k, "b", long, "", "1", long, "", guard), []any{0, left, "a", 1, anything, token, 0})
		want(b.tb, b.call(functions.Release, k, "a"), []any{1, 0})
		want(b.tb, b.call(functions.Acquire, k, "c", long), []any{0, left, "", 1})
	})
}

// The holds that the server remembers may have been given back before the failover, and the lock
// granted to another owner.
func TestAYoungMemoryAddsNoHold(t *testing.T) {
	guarded(t, func(b *bed, k string) {
		b.age()
		want(b.tb, b.call(functions.AcquireReentrant, k, "a", long, "1", guard), yes)
		b.forget()
		want(b.tb, b.call(functions.AcquireReentrant, k, "a", long, "1", guard), yes)
		want(b.tb, b.call(functions.AcquireReentrant, k, "a", long, "2"), []any{0, left, "a", 0})
		want(b.tb, b.call(functions.Wait, k, "a", long, "", "1", long, "2"), []any{0, left, "a", 0, anything, 0, 0})
		b.expectLock(k, "a", 1, 0)
		b.age()
		want(b.tb, b.call(functions.AcquireReentrant, k, "a", long, "2"), []any{1, token, 600000, 2, 1})
	})
}

// A hold that the server has forgotten is not renewed by way of one that it remembers: that one's
// release would free the lock.
func TestARenewalNamesItsHold(t *testing.T) {
	guarded(t, func(b *bed, k string) {
		got := b.call(functions.AcquireReentrant, k, "a", long, "1").([]any)
		fence := itoa(got[1].(int64))
		want(b.tb, b.call(functions.AcquireReentrant, k, "a", long, "2"), []any{1, token, 600000, 2, 1})
		want(b.tb, b.call(functions.Renew, k, "a", long, "", fence, "2"), []any{1, token, 600000, 2, 1})
		want(b.tb, b.call(functions.Release, k, "a", "2"), []any{1, 1})
		want(b.tb, b.call(functions.Renew, k, "a", long, "", fence, "2"), []any{0, left, "a", 0})
		want(b.tb, b.call(functions.Renew, k, "a", long, "", fence, "1"), yes)
		want(b.tb, b.call(functions.Renew, k, "a", long, "", fence, "*"), prefix("HFARG hold must not be '*'"))
		want(b.tb, b.call(functions.Release, k, "a", "1"), []any{1, 0})
		b.take(k, "plain", long)
		want(b.tb, b.call(functions.Renew, k, "plain", long, "", fence, "1"), []any{0, left, "plain", 0})
	})
}

// A replica that may be written to, or says that it is called like a field of INFO, is no new memory.
func TestAMemoryIsThePrimarys(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		one := []server.Option{server.Owned(), server.WithFlavour(f)}
		b, other := lay(t, server.Single(t, one...)), server.Single(t, one...)
		k := b.key("k")
		b.age()
		host, port, _ := strings.Cut(b.addr, ":")
		replica := dial(t, other.Addrs()[0], 2)
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
		const short = "1"
		for range 3 {
			want(t, replica.do("FCALL", functions.Acquire, "1", k, "a", short, "1", short), []any{0, 1, "", 0})
		}
	})
}

// Who gives up early does so when the pause alone is too long.
func TestAPauseIsTooLongForABoundedWait(t *testing.T) {
	guarded(t, func(b *bed, k string) {
		want(b.tb, b.call(functions.Wait, k, "a", long, "", "1", "1000", "", guard), []any{0, left, "", -1, anything, 0, 0})
		b.expectFree(k)
		b.age()
		want(b.tb, b.call(functions.Acquire, k, "a", long, "1", guard), yes)
		b.wait(k, "b", "", 1)
		b.forget()
		want(b.tb, b.call(functions.Release, k, "a"), []any{1, 0})
		want(b.tb, b.call(functions.Wait, k, "c", long, "", "1", "1000"), []any{0, left, "", -2, anything, token, 0})
	})
}

// The pause goes by also while the lock is held, and whoever asks for it lets it begin.
func TestAPauseBeginsWithTheFirstGuardedCall(t *testing.T) {
	guarded(t, func(b *bed, k string) {
		b.take(k, "a", long)
		for _, call := range [][]string{{functions.Acquire, "b", long, "1", guard}, {functions.Wait, "b", long, "", "1", long, "", guard}} {
			b.load()
			b.call(call[0], k, call[1:]...)
			now := b.c.do("TIME").([]any)
			if since := number(b.memory()[2]); since > number(now[0].(string))*1_000_000+number(now[1].(string)) {
				b.tb.Fatalf("%s did not let a memory begin: it is since %d, and before it was %v", call[0], since, now)
			}
		}
	})
}

func TestNoLeaseIsLongerThanTheGuard(t *testing.T) {
	guarded(t, func(b *bed, k string) {
		const longer = "600001"
		b.age()
		for _, call := range [][]string{
			{functions.Acquire, "a", longer, "1", guard}, {functions.AcquireReentrant, "a", longer, "h", guard}, {functions.Wait, "a", longer, "", "1", long, "", guard},
		} {
			want(b.tb, b.call(call[0], k, call[1:]...), prefix("HFARG guard_ms must not be less than ttl_ms"))
		}
		want(b.tb, b.call(functions.Acquire, k, "a", long, "1", guard), yes)
		b.wait(k, "b", "", 1)
		for _, call := range [][]string{
			{functions.Renew, "a", longer}, {functions.Acquire, "a", longer}, {functions.Wait, "b", longer, ""}, {functions.Wait, "c", longer, ""},
		} {
			want(b.tb, b.call(call[0], k, call[1:]...), prefix("HFARG ttl_ms must not be more than the guard of the lock, 600000"))
		}
		b.expectLock(k, "a", 1, 1)
		want(b.tb, b.call(functions.Wait, k, "b", longer, "", "1", long, "", longer), []any{0, left, "a", 1, anything, token, 0})
		want(b.tb, b.call(functions.Renew, k, "a", longer), []any{1, token, 600001, 1, 1})
	})
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
			want(t, b.call(functions.Acquire, k, "a", long, "1", guard), notYet)
		}
		for _, bad := range [][]string{{before[0]}, {before[0], before[1]}, {before[0], before[1], "0"}, {before[0], before[1], "x"}} {
			want(t, b.c.do(append([]string{"FCALL", functions.Memory, "0"}, bad...)...), prefix("HFARG since_us must be"))
		}
		user := b.as(append(aclLine(t), "+info"))
		call := append([]string{"FCALL", functions.Memory, "0"}, before...)
		want(t, user.do(call...), prefix("HFARG since_us is only for those who may use FUNCTION LOAD"))
		if got := b.memory(before...); got[2] != "1" {
			t.Fatalf("carried %v, and it is %v", before, got)
		}
		want(t, b.call(functions.Acquire, k, "a", long, "1", guard), yes)
	}, server.Owned())
}
