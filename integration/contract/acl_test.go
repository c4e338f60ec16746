// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// aclOf are the rules that a page of functions/ gives a user.
func aclOf(tb testing.TB, user, page string) []string {
	tb.Helper()
	text, err := os.ReadFile("../../functions/" + page)
	if err != nil {
		tb.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^ACL SETUSER ` + user + ` on '>secret' (.*)$`).FindSubmatch(text)
	if m == nil {
		tb.Fatalf("%s has no ACL line for the user '%s'", page, user)
	}
	return strings.Fields(strings.ReplaceAll(string(m[1]), "'", ""))
}

// aclLine is that of users of locks.
func aclLine(tb testing.TB) []string { return aclOf(tb, "locker", "README.md") }

// as gives a fresh user these rules and returns a connection of that user.
func (b *bed) as(rules []string) *conn {
	b.tb.Helper()
	b.c.do("ACL", "DELUSER", "locker")
	want(b.tb, b.c.do(append([]string{"ACL", "SETUSER", "locker", "on", ">secret"}, rules...)...), "OK")
	c := b.dial(2)
	want(b.tb, c.do("AUTH", "locker", "secret"), "OK")
	b.tb.Cleanup(func() { b.c.do("ACL", "DELUSER", "locker") })
	return c
}

// aclTour calls everything a lock user needs, with a line, holes in it, foreign keys, subscribers
// and reserved runs. It returns the replies that are errors. All keys begin with lock:
func (b *bed) aclTour(c *conn, key string) []failure {
	b.tb.Helper()
	var errs []failure
	call := func(function string, args ...string) {
		b.tb.Helper()
		if f, bad := c.fcall(function, key, args...).(failure); bad {
			errs = append(errs, f)
		}
		if pttl := b.c.do("PTTL", key); pttl == int64(-1) && b.c.do("TYPE", key) != "string" {
			b.tb.Errorf("%s left a key without a TTL", function)
		}
	}
	channel := []string{functions.OptChannel, key + ":channel"}
	call(functions.Break)
	call(functions.Inspect)
	call(functions.Acquire, "x", long, functions.OptTokens, "10")
	call(functions.Release, "x")
	call(functions.Acquire, "x", long, functions.OptMinHold, long)
	call(functions.Release, "x")
	call(functions.Break, functions.OptForget)
	call(functions.Acquire, "x", long)
	call(functions.Wait, "y", long, functions.OptValue)
	call(functions.Finish, "x", "v", long)
	call(functions.Wait, "y", long, functions.OptValue)
	call(functions.Break, functions.OptForget)
	call(functions.AcquireReentrant, "a", long, "g")
	call(functions.AcquireReentrant, "a", long, "h")
	call(functions.Acquire, "x", long)
	call(functions.Release, "a", functions.OptHold, "h")
	call(functions.Renew, "a", long)
	for _, w := range []string{"b", "c", "d", "e"} {
		call(functions.Wait, w, long)
	}
	call(functions.Leave, "c")
	call(functions.Wait, "e", long)
	call(functions.Release, "a", functions.OptHold, "g")
	call(functions.Wait, append([]string{"b", long}, channel...)...)
	call(functions.Wait, append([]string{"f", long}, channel...)...)
	call(functions.Break, functions.OptReason, "why")
	call(functions.Release, "d")
	call(functions.Release, "e")
	b.c.do("DEL", key)
	b.c.do("SET", key, "theirs", "PX", long)
	call(functions.Acquire, "a", long)
	call(functions.Break)
	b.c.do("DEL", key)
	return errs
}

// The line suffices, nothing in it is there for no reason, and where one is missing no key is left without
// a TTL.
func TestMinimalACL(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		rules, key := aclLine(t), "lock:"+b.run
		for _, missing := range append(slices.Clone(rules), "nothing", "+pexpireat +del", "+pexpireat +hdel") {
			if missing == "+ssubscribe" || missing != "nothing" && (!strings.HasPrefix(missing, "+") || strings.HasPrefix(missing, "+fcall")) {
				continue
			}
			left := slices.DeleteFunc(slices.Clone(rules), func(r string) bool { return slices.Contains(strings.Fields(missing), r) })
			errs := b.aclTour(b.as(left), key)
			// without +pubsub|shardnumsub every waiter with a channel is passed over
			if suffices := missing == "nothing" || missing == "+pubsub|shardnumsub"; suffices != (len(errs) == 0) {
				t.Errorf("without %s: %v", missing, errs)
			}
			for _, e := range errs {
				if !matches(e, prefix("HFSERVER ")) && !(missing == "+spublish" && matches(e, prefix("HFARG CHANNEL must "))) {
					t.Errorf("without %s: %s", missing, e)
				}
				expectNoTraceOfLua(t, string(e))
				if !regexp.MustCompile(`can't|must|permission`).MatchString(string(e)) {
					t.Errorf("without %s: it does not say what was refused: %s", missing, e)
				}
			}
		}
		c := b.as(rules)
		want(t, c.fcall(functions.Acquire, "other:"+b.run, "a", long), prefix("NOPERM "))
		want(t, c.do("SSUBSCRIBE", key+":channel"), []any{"ssubscribe", key + ":channel", 1})
	}, server.Owned())
}

// luaTrace is what Lua or the server say of the inside of a script.
var luaTrace = regexp.MustCompile(`user_function|script: \w+, on |stack|\[string|\.lua|attempt to|nil value`)

func expectNoTraceOfLua(tb testing.TB, text string) {
	tb.Helper()
	if luaTrace.MatchString(text) {
		tb.Errorf("an error shows the inside of the library: %s", text)
	}
}

// Who names a channel shows that it may use it: others publish there on its behalf.
func TestChannelMustBeTheCallers(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		c := b.as(aclLine(t))
		k, other := "lock:"+b.run, "other:"+b.run
		refused := prefix("HFARG CHANNEL must be one that the caller may publish to")
		want(t, c.fcall(functions.Wait, k, "a", long, functions.OptChannel, other), refused)
		want(t, b.c.do("EXISTS", k), 0)
		b.take(k, "a", long)
		b.wait(k, "x", other, 1) // known to be well-formed from now on
		before := b.c.do("DUMP", k)
		for _, owner := range []string{"a", "b", "x"} {
			want(t, c.fcall(functions.Wait, k, owner, long, functions.OptChannel, other), refused)
		}
		want(t, b.c.do("DUMP", k), before)
		b.c.do("DEL", k)
	}, server.Owned())
}

// One that may not be told is passed over, and the next has the lock, with and without the plain
// case.
func refusedPublish(b *bed, _ string) {
	c := b.as(aclLine(b.tb))
	for _, more := range [][]string{nil, {functions.OptMinHold, long}, {functions.OptLimit, "1"}} {
		k := "lock:" + b.run
		sub, next := b.subscribe("other:"+b.run), b.subscribe(k+":channel")
		b.take(k, "a", long)
		args := append([]string{"b", long, functions.OptChannel, "other:" + b.run}, more...)
		want(b.tb, b.call(functions.Wait, k, args...).([]any)[3], 1)
		b.wait(k, "c", k+":channel", 2)
		want(b.tb, c.fcall(functions.Release, k, "a"), 1)
		want(b.tb, b.call(functions.Inspect, k), []any{1, "c", 1, token, between{1, 2001}, 0, functions.WhyHeld})
		want(b.tb, grant(b.tb, next.message()).owner, "c")
		want(b.tb, b.call(functions.Release, k, "c"), 1)
		b.take(k, "a", "100")
		want(b.tb, b.call(functions.Wait, k, args...).([]any)[3], 1)
		b.wait(k, "c", k+":channel", 2)
		b.pause(101)
		want(b.tb, c.fcall(functions.Wait, k, "c", long), token) // it goes on to the caller
		sub.silent()
		b.c.do("DEL", k)
	}
}

// A call that is refused a write tells nobody of what was not written.
func TestNobodyIsToldOfWhatWasNotWritten(t *testing.T) {
	each(t, func(t *testing.T, b *bed) {
		for _, missing := range []string{"+hset", "+hdel", "+pexpireat"} {
			c := b.as(slices.DeleteFunc(aclLine(t), func(r string) bool { return r == missing }))
			k := "lock:" + b.run + missing
			waiter := b.subscribe(k + ":waiter")
			for _, call := range [][]string{{functions.Break}, {functions.Release, "a"}, {functions.Leave, "a"}, {functions.Finish, "a", "v", long}} {
				if call[0] == functions.Finish && missing == "+hdel" {
					continue // it takes nothing out of the line
				}
				b.take(k, "a", long)
				b.wait(k, "b", k+":waiter", 1)
				want(t, c.fcall(call[0], k, call[1:]...), prefix("HFSERVER "))
				waiter.silent()
				b.c.do("DEL", k)
			}
		}
	}, server.Owned())
}
