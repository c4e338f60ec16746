package contract

import (
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// FUNCTION LOAD REPLACE while a lock is held and waited for changes nothing for anybody, and tokens
// go on growing.
func TestReloadWhileLocksAreHeldAndWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k, ch := b.key("k"), b.key("channel")
		sub := b.subscribe(ch)
		fence := b.take(k, "a", long)
		b.wait(k, "b", ch, 1)
		b.wait(k, "c", "", 2)
		before := b.c.do("DUMP", k)
		b.load()
		want(t, b.c.do("DUMP", k), before)
		want(t, b.call(functions.Renew, k, "a", long), []any{1, between{fence, fence}, 600000, 1, 1})
		b.wait(k, "b", ch, 1)
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		next := grant(t, sub.message())
		want(t, next.owner, "b")
		if next.fence <= fence {
			t.Errorf("token %d after %d", next.fence, fence)
		}
		b.load()
		want(t, b.call(functions.Release, k, "b"), []any{1, 0})
		got := b.call(functions.Inspect, k).([]any)
		want(t, got, []any{1, "c", 1, token, between{1, 2000}, 0})
		if got[3].(int64) <= next.fence {
			t.Errorf("token %d after %d", got[3], next.fence)
		}
	})
}

// A restart loses the server's memory, but not the key: the token in it is the floor.
func TestTokensSurviveARestart(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		fence := b.take(k, "a", long)
		b.wait(k, "b", "", 1)
		if err := b.d.Nodes()[0].Restart(); err != nil {
			t.Fatal(err)
		}
		b.c = b.dial(2)
		// the library is there again too
		want(t, b.call(functions.Renew, k, "a", long), []any{1, between{fence, fence}, 600000, 1, 1})
		want(t, b.call(functions.Release, k, "a"), []any{1, 0})
		got := b.call(functions.Inspect, k).([]any)
		want(t, got, []any{1, "b", 1, between{fence + 1, 1 << 53}, between{1, 2000}, 0})
	}, server.Owned(), server.WithConfig("appendonly", "yes"), server.WithConfig("appendfsync", "always"))
}

// Tokens grow from owner to owner and from lock to lock, and a run is never entered by anyone else.
func TestTokensGrow(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		locks := []string{b.key("x"), b.key("y"), b.key("z")}
		floor := int64(0)
		for i := range 300 {
			k := locks[i%3]
			got := b.call(functions.Acquire, k, "o", long, itoa(int64(1+i%7*100))).([]any)
			want(t, got, []any{1, between{floor + 1, 1 << 53}, 600000, 1, between{1, int64(1 + i%7*100)}})
			floor = got[1].(int64)
			if i%2 == 0 {
				floor += got[4].(int64) - 1
			}
			want(t, b.call(functions.Release, k, "o", "", itoa(floor)), []any{1, 0})
		}
	})
}

// The next token is above what was used of a run, and no higher than need be: tokens do not run
// ahead of the clock.
func TestLastFenceEndsTheRun(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for name, next := range map[string]func(k string){
			"free":   func(k string) { b.take(k, "next", long) },
			"waited": func(string) {},
		} {
			k := b.key(name)
			b.load() // forgets the tokens that tests before this one pushed ahead of the clock
			fence := b.take(k, "a", long, "1000000")
			if name == "waited" {
				b.wait(k, "next", "", 1)
			}
			last := fence + 200_000 // ahead of the clock, within the run
			want(t, b.call(functions.Release, k, "a", "", itoa(last)), []any{1, 0})
			next(k)
			got := b.call(functions.Inspect, k).([]any)
			want(t, got, []any{1, "next", 1, between{last + 1, fence + 999_999}, between{1, 600_000}, 0})
		}
	})
}

// Tokens are the time in microseconds while nothing pushes them ahead of it.
func TestTokenIsTheTime(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		k := b.key("k")
		b.load() // forgets the tokens that tests before this one pushed ahead of the clock
		before := b.serverMS() * 1000
		fence := b.take(k, "b", long)
		want(t, fence, between{before, (b.serverMS() + 1) * 1000})
	})
}

// The replica has the same hash, with the same end.
func TestReplicaHasTheSameLock(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		b := lay(t, server.Replicated(t, 1, server.WithFlavour(f)))
		replica := dial(t, b.d.Nodes()[1].Addr, 2)
		k := b.key("k")
		steps := []step{
			{functions.AcquireReentrant, []string{"a", long, "g"}, []any{1, token, 600000, 1, 1}},
			{functions.AcquireReentrant, []string{"a", long, "h"}, []any{1, token, 600000, 2, 1}},
			{functions.Wait, []string{"b", long, "ch"}, []any{0, anything, "a", 1, anything, token, anything}},
			{functions.Wait, []string{"c", long, ""}, []any{0, anything, "a", 2, anything, token, anything}},
			{functions.Leave, []string{"b"}, []any{1}},
			{functions.Renew, []string{"a", long, "ch"}, []any{1, token, 600000, 2, 1}},
			{functions.Break, nil, []any{1, "a", token}},
			{functions.Renew, []string{"c", long}, []any{1, token, 600000, 1, 1}},
		}
		for i, s := range steps {
			want(t, b.c.run(s, k), s.reply)
			want(t, b.c.do("WAIT", "1", "10000"), 1)
			for _, read := range []string{"DUMP", "PEXPIRETIME"} {
				if got, here := replica.do(read, k), b.c.do(read, k); got != here {
					t.Fatalf("after step %d, %s: %s of the replica is %q, of the primary %q", i, s.function, read, got, here)
				}
			}
		}
		want(t, replica.do("FCALL_RO", functions.Inspect, "1", k), []any{1, "c", 1, token, between{1, 600_000}, 0})
		want(t, replica.fcall(functions.Acquire, k, "x", long), prefix("READONLY "))
		want(t, b.call(functions.Release, k, "c"), []any{1, 0})
		want(t, b.c.do("WAIT", "1", "10000"), 1)
		want(t, replica.do("EXISTS", k), 0)
	})
}
