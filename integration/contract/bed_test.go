// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

const long = "600000" // a lease that does not end while a test runs

// bed is a server with the library on it, and connections to it.
type bed struct {
	tb   testing.TB
	d    *server.Deployment
	addr string
	c    *conn // RESP2
	run  string

	source string // the library, if it is not the usual one
}

// lay loads the library on the first primary of a deployment.
func lay(tb testing.TB, d *server.Deployment) *bed {
	tb.Helper()
	b := &bed{tb: tb, d: d, addr: d.Addrs()[0], run: rand.Text()[:8]}
	b.c = b.dial(2)
	b.load()
	return b
}

// dial opens one more connection to the server. resp is 2 or 3.
func (b *bed) dial(resp int) *conn {
	b.tb.Helper()
	c := dial(b.tb, b.addr)
	if o := b.d.ClientOption(); o.Password != "" {
		c.do("AUTH", cmp.Or(o.Username, "default"), o.Password)
	}
	if resp == 3 {
		c.do("HELLO", "3")
	}
	return c
}

func (b *bed) load() {
	b.tb.Helper()
	want(b.tb, b.c.do("FUNCTION", "LOAD", "REPLACE", cmp.Or(b.source, functions.Source)), functions.Library)
}

// key returns a name that no other test uses, on a server that others may use.
func (b *bed) key(name string) string {
	key := "contract:" + b.run + ":" + strings.ReplaceAll(b.tb.Name(), " ", "_") + ":" + name
	if os.Getenv("HOLDFAST_REDIS") != "" { // else the whole server is thrown away
		b.tb.Cleanup(func() { b.dial(2).do("DEL", key) })
	}
	return key
}

// call runs a function over RESP2.
func (b *bed) call(function, key string, args ...string) any {
	b.tb.Helper()
	return b.c.fcall(function, key, args...)
}

func (c *conn) fcall(function, key string, args ...string) any {
	c.tb.Helper()
	return c.do(append([]string{"FCALL", function, "1", key}, args...)...)
}

// take acquires a lock that must be free, and returns its token.
func (b *bed) take(key, owner, ttl string, more ...string) int64 {
	b.tb.Helper()
	got := b.call(functions.Acquire, key, append([]string{owner, ttl}, more...)...)
	if run, ok := got.([]any); ok {
		want(b.tb, got, []any{1, token, anything})
		got = run[1]
	}
	want(b.tb, got, token)
	return got.(int64)
}

// inLine is what a waiter is told behind a holder.
func inLine(owner string, position any) []any {
	return []any{0, pttl, owner, position, functions.WhyHeld, serverMS, token, anything}
}

// wait joins a line and must get the position. channel may be "".
func (b *bed) wait(key, owner, channel string, position int) {
	b.tb.Helper()
	args := []string{owner, long}
	if channel != "" {
		args = append(args, functions.OptChannel, channel)
	}
	want(b.tb, b.call(functions.Wait, key, args...), []any{0, pttl, anything, position, functions.WhyHeld, serverMS, token, anything})
}

// expectLock asserts what inspect says, the token and the remaining lease aside.
func (b *bed) expectLock(key, owner string, holds, waiters int) {
	b.tb.Helper()
	want(b.tb, b.call(functions.Inspect, key), []any{1, owner, holds, token, between{0, 31536000000}, waiters, functions.WhyHeld})
}

// free is what inspect says of a lock that nobody has or wants, and gone what others are told.
var (
	free = []any{0, "", 0, 0, 0, 0, functions.WhyFree}
	gone = []any{0, 0, "", 0, functions.WhyFree}
)

// busy is what others are told of a lock that is held.
func busy(owner string, waiters any) []any {
	return []any{0, pttl, owner, waiters, functions.WhyHeld}
}

func (b *bed) expectFree(key string) {
	b.tb.Helper()
	want(b.tb, b.call(functions.Inspect, key), free)
	want(b.tb, b.c.do("EXISTS", key), 0)
}

// end puts the end of a lease into the past. The key stays as long as its line lets it.
func (b *bed) end(key string) {
	b.tb.Helper()
	want(b.tb, b.c.do("HSET", key, "until", "1"), 0)
}

// subscribe returns a connection that is subscribed to a channel.
func (b *bed) subscribe(channel string) *conn {
	b.tb.Helper()
	c := b.dial(2)
	want(b.tb, c.do("SSUBSCRIBE", channel), []any{"ssubscribe", channel, 1})
	return c
}

// message returns the next message of a subscribed connection.
func (c *conn) message() string {
	c.tb.Helper()
	got, ok := c.receive(ioWithin).([]any)
	if !ok || len(got) != 3 || got[0] != "smessage" {
		c.tb.Fatalf("not a message: %v", got)
	}
	return got[2].(string)
}

// silent asserts that no message is on its way: an answer to a later PING would come after it.
func (c *conn) silent() {
	c.tb.Helper()
	want(c.tb, c.do("PING"), []any{"pong", ""})
}

// told is a grant message, taken apart.
type told struct {
	fence, until, tokens int64
	owner, key           string
}

func grant(tb testing.TB, message string) told {
	tb.Helper()
	parts := strings.SplitN(message, " ", 5)
	if len(parts) != 5 || number(parts[3]) > int64(len(parts[4])) {
		tb.Fatalf("not a grant: %q", message)
	}
	owner, key := parts[4][:number(parts[3])], parts[4][number(parts[3]):]
	return told{number(parts[0]), number(parts[1]), number(parts[2]), owner, strings.TrimPrefix(key, " ")}
}

func (b *bed) serverMS() int64 {
	b.tb.Helper()
	return b.now() / 1000
}

// eventually polls a condition of the server, which tells nobody when it becomes true.
func eventually(tb testing.TB, what string, condition func() bool) {
	tb.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(ioWithin)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatal("never happened: " + what)
		}
	}
}

func number(text string) int64 {
	var n int64
	if _, err := fmt.Sscan(text, &n); err != nil {
		panic(fmt.Sprintf("not a number: %q", text))
	}
	return n
}

// dirty counts the changes of the data set since the last save.
func (b *bed) dirty() int64 {
	b.tb.Helper()
	const field = "rdb_changes_since_last_save:"
	text := b.c.do("INFO", "persistence").(string)
	_, text, _ = strings.Cut(text, field)
	text, _, _ = strings.Cut(text, "\r\n")
	return number(text)
}

// doubles is a field of the key as the library packs it.
func doubles(all ...float64) string {
	var b []byte
	for _, x := range all {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return string(b)
}

// now is the server's time in microseconds.
func (b *bed) now() int64 {
	b.tb.Helper()
	t := b.c.do("TIME").([]any)
	return number(t[0].(string))*1_000_000 + number(t[1].(string))
}

func TestMain(m *testing.M) { testbed.Main(m) }

// each runs a test on a server of every flavour. With options the server is the test's own,
// otherwise it is shared with other tests, one after the other.
func each(t *testing.T, test func(t *testing.T, b *bed), opts ...server.Option) {
	t.Helper()
	server.Each(t, func(t *testing.T, f server.Flavour) {
		if len(opts) > 0 {
			test(t, lay(t, server.Single(t, append(opts, server.WithFlavour(f))...)))
			return
		}
		test(t, lay(t, testbed.Share(t, server.Spec{Flavour: f})))
	})
}
