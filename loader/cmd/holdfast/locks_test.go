// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

func open(t *testing.T, option rueidis.ClientOption, cfg client.Config) *client.Client {
	t.Helper()
	c, err := client.Open(option, cfg)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// wait begins to wait for a lock, and returns when the server knows. What it got comes by the
// channel.
func wait(t *testing.T, c *client.Client, name string, place int) <-chan *client.Lock {
	t.Helper()
	got := make(chan *client.Lock, 1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		if lock, err := c.Acquire(ctx, name); err == nil {
			got <- lock
		}
	}()
	require.Eventually(t, func() bool {
		info, err := c.Inspect(ctx, name)
		return err == nil && info.Waiters == place
	}, soon, pollEvery)
	return got
}

func decode[T any](t *testing.T, r result) (object T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.out), &object), "%v", r)
	return object
}

type listed struct {
	ExitCode int `json:"exit_code"`
	Locks    []locks.Lock
	More     bool
	Total    int
	Held     int
	Waiting  int
	Skipped  int
}

func (l listed) names() (names []string) {
	for _, lock := range l.Locks {
		names = append(names, lock.Name)
	}
	return names
}

// seeAndBreak tries all commands about locks, with locks that the option's user takes.
func seeAndBreak(t *testing.T, option rueidis.ClientOption, do doer) {
	holder := open(t, option, client.Config{Label: "nightly"})
	waiter := open(t, option, client.Config{})
	var names []string
	for i := range 20 { // in slots of all nodes of a Cluster
		name := fmt.Sprintf("order:%02d", i)
		names = append(names, name)
		_, err := holder.Acquire(context.Background(), name)
		require.NoError(t, err)
	}
	lock, err := holder.Acquire(context.Background(), "report")
	require.NoError(t, err)
	got := wait(t, waiter, "report", 1)

	list := decode[listed](t, do("ls", "--json"))
	require.Equal(t, append(names, "report"), list.names())
	require.Equal(t, os.Getpid(), list.Locks[0].PID)
	require.Equal(t, "nightly", list.Locks[0].Label)
	require.Equal(t, []string{"report"}, decode[listed](t, do("ls", "--waited", "--json")).names())
	limited := decode[listed](t, do("ls", "--limit", "3", "--json"))
	require.Len(t, limited.Locks, 3)
	require.True(t, limited.More)
	r := do("ls")
	require.Equal(t, 0, r.code, r)
	require.Equal(t, 22, strings.Count(r.out, "\n"), "titles and a line for each: %s", r.out)
	require.NotContains(t, r.out, "\x1b", "no colours but on a terminal")

	r = do("inspect", "report")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, fmt.Sprintf("pid %d (nightly)", os.Getpid()))
	require.Contains(t, r.out, fmt.Sprint(lock.Fence()))
	r = do("inspect", "nobody-has-it")
	require.Equal(t, 5, r.code, r)
	require.Contains(t, r.out, "free")

	r = do("line", "report", "--json")
	require.Equal(t, 0, r.code, r)
	line := decode[struct {
		Lock  locks.Lock
		Total int
		Line  []locks.Waiter
	}](t, r)
	require.Equal(t, lock.Owner(), line.Lock.Owner)
	require.Equal(t, 1, line.Total)
	require.Len(t, line.Line, 1)
	require.Equal(t, locks.Listening, line.Line[0].Hears)
	require.NotNil(t, line.Line[0].Since)
	r = do("line", "report")
	require.Contains(t, r.out, "listening")
	require.Contains(t, do("line", names[0]).out, "nobody waits")

	r = do("watch", "--json", "--count", "2", "--every", "50ms")
	require.Equal(t, 0, r.code, r)
	looks := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Len(t, looks, 2)
	var look locks.Look
	require.NoError(t, json.Unmarshal([]byte(looks[1]), &look))
	require.Equal(t, []int{21, 1}, []int{look.Held, look.Waiting})

	r = do("break", "report", "--reason", "it hangs", "--yes", "--json")
	require.Equal(t, 0, r.code, r)
	next := <-got
	broken := decode[struct{ Lost, Next *locks.Lock }](t, r)
	require.Equal(t, lock.Owner(), broken.Lost.Owner)
	require.Equal(t, next.Owner(), broken.Next.Owner)
	<-lock.Context().Done()
	var lost *client.LostError
	require.ErrorAs(t, context.Cause(lock.Context()), &lost)
	require.ErrorIs(t, lost, client.ErrLost)
	r = do("break", names[0], "--reason", "it hangs", "--yes")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, "nobody has it now")
	r = do("break", names[0], "--reason", "it hangs", "--yes")
	require.Equal(t, 5, r.code, "nobody has it any more: %v", r)
}

// Of more locks than are shown, those with waiters are shown, and all are counted.
func TestManyLocks(t *testing.T) {
	const many = 3000
	d, where := loaded(t)
	option := d.ClientOption()
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	var calls rueidis.Commands
	call := func(function, name, owner string) {
		fcall := redis.B().Fcall().Function("holdfast_" + function).Numkeys(1).Key("lock:" + name)
		calls = append(calls, fcall.Arg(owner, "600000").Build())
	}
	for n := range many {
		call("acquire", fmt.Sprintf("order:%04d", n), "me")
	}
	for n, name := range []string{"order:2999", "order:2999", "order:0007", "zebra"} {
		call("acquire", name, "me")
		call("wait", name, fmt.Sprintf("waiter %d", n))
	}
	for _, reply := range redis.DoMulti(context.Background(), calls...) {
		require.NoError(t, reply.Error())
	}

	look := decode[locks.Look](t, where.do(t, "watch", "--json", "--count", "1"))
	require.Equal(t, []int{many + 1, many + 1, 4}, []int{look.Total, look.Held, look.Waiting})
	require.True(t, look.More)
	waited := func(all []locks.Lock) (names []string) {
		for _, l := range all {
			if l.Waiters > 0 {
				names = append(names, l.Name)
			}
		}
		return names
	}
	require.Len(t, look.Locks, 1000)
	require.Equal(t, []string{"order:2999", "order:0007", "zebra"}, waited(look.Locks))

	list := decode[listed](t, where.do(t, "ls", "--json"))
	require.Len(t, list.Locks, 1000)
	require.Equal(t, []string{"order:0007", "order:2999", "zebra"}, waited(list.Locks))
	require.Equal(t, []int{many + 1, many + 1, 4}, []int{list.Total, list.Held, list.Waiting})
	list = decode[listed](t, where.do(t, "ls", "--json", "--limit", "1"))
	require.Equal(t, []string{"order:2999"}, list.names(), "the one with most waiters")
	list = decode[listed](t, where.do(t, "ls", "order:000*", "--json", "--limit", "2", "--sort", "name"))
	require.Equal(t, []string{"order:0000", "order:0001"}, list.names())
	require.Equal(t, []int{10, 10, 1}, []int{list.Total, list.Held, list.Waiting})
	list = decode[listed](t, where.do(t, "ls", "--json", "--limit", "2", "--sort", "waiters"))
	require.Equal(t, "order:2999", list.names()[0])
	list = decode[listed](t, where.do(t, "ls", "--json", "--limit", "2", "--sort", "age"))
	require.Equal(t, []string{"order:0000", "order:0001"}, list.names(), "those that were taken first")
	require.Empty(t, decode[listed](t, where.do(t, "ls", "--json", "--older-than", "1h")).Locks)
	require.Equal(t, many+1, decode[listed](t, where.do(t, "ls", "--json", "--older-than", "1ms", "--holder", "me")).Total)
	require.Empty(t, decode[listed](t, where.do(t, "ls", "--json", "--holder", "another")).Locks)
	r := where.do(t, "ls")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.errors, "2001 more")
	require.Contains(t, r.errors, "4 wait")
}

// What a server has beside locks does not disturb, and nothing of it reaches the terminal.
func TestKeysThatAreNoLocks(t *testing.T) {
	d, where := loaded(t)
	do := func(words ...string) {
		t.Helper()
		_, err := d.Nodes()[0].Do(context.Background(), words...)
		require.NoError(t, err)
	}
	do("RPUSH", "lock:list", "1")
	do("HSET", "lock:hash", "a", "b")
	do("SET", "lock:plain", "theirs\x1b[31m", "PX", "60000")
	do("SET", "lock:endless", "theirs")
	do("SET", "other", "value")
	do("FCALL", "holdfast_acquire", "1", "lock:red\x1b[31m", "me", "60000")
	do("FCALL", "holdfast_acquire", "1", "l[a-z]*:mine", "me", "60000")
	do("FCALL", "holdfast_acquire", "1", "lb:other", "me", "60000")
	do("FCALL", "holdfast_acquire", "1", "lock:", "me", "60000") // no name is left of it

	r := where.do(t, "ls")
	require.Equal(t, 0, r.code, r)
	require.NotContains(t, r.out, "\x1b")
	require.Contains(t, r.out, `red\x1b[31m`)
	require.Contains(t, r.errors, "3 keys")
	require.Regexp(t, `endless +"theirs" +- +no end +- `, r.out)
	_, err := open(t, d.ClientOption(), client.Config{}).TryAcquire(context.Background(), "endless")
	require.ErrorContains(t, err, `"theirs", without an end, 0 waiting`)
	list := decode[listed](t, where.do(t, "ls", "--json"))
	require.Equal(t, []string{"endless", "plain", "red\x1b[31m"}, list.names())
	require.Equal(t, 3, list.Skipped)

	list = decode[listed](t, where.do(t, "ls", "--json", "--prefix", "l[a-z]*:"))
	require.Equal(t, []string{"mine"}, list.names(), "a prefix is no pattern")
	list = decode[listed](t, where.do(t, "ls", "--json", "--prefix", ""))
	require.Contains(t, list.names(), "lb:other", "the whole key is the name")
	require.NotContains(t, list.names(), "other", "without a prefix, strings are not taken for locks")

	r = where.do(t, "inspect", "list")
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, `"list"`)
}

func TestAQuorum(t *testing.T) {
	t.Parallel()
	d := server.Several(t, 3, server.Owned())
	do := func(command string, more ...string) result { return addresses(d).do(t, command, more...) }
	require.Equal(t, 0, do("load").code)
	r := do("ls")
	require.Equal(t, 2, r.code, r)
	require.Contains(t, r.errors, "--quorum")

	// A server that has just started remembers too little for a lease of the default length.
	const lease = 5 * time.Second
	brief := []string{"--quorum", "--lease", lease.String(), "--guard", lease.String()}
	benchAt(t, d, "quorum", do, append(brief, "--for", "5s")...)
	r = interrupted(t, d, "contended", append(brief, "--only", "contended")...)
	require.Equal(t, 0, r.code, r)
	leavesNothing(t, d)
	run := func(name string) result { return do("run", append(brief, name, "--", "echo", "ran")...) }
	require.Equal(t, ran, run("a"))

	c, err := quorum.Open(d.ClientOptions(), client.Config{Lease: lease})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	lock, err := c.TryAcquire(t.Context(), "report")
	require.NoError(t, err)
	list := decode[listed](t, do("ls", "--quorum", "--json"))
	require.Equal(t, []string{"report"}, list.names())
	require.Equal(t, lock.Owner(), list.Locks[0].Owner)
	require.NotContains(t, do("line", "report", "--quorum").out, "listening", "a quorum has no line")

	scan := func(right string) {
		_, err := d.Nodes()[2].Do(t.Context(), "ACL", "SETUSER", "default", right)
		require.NoError(t, err)
	}
	scan("-scan")
	r = do("ls", "--quorum")
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "NOPERM", "of one server, which is not away")
	scan("+scan")

	url, _ := serving(t, nil, append(addresses(d), "exporter", "--quorum", "--listen", "127.0.0.1:0", "--every", "50ms")...)
	require.NoError(t, d.Nodes()[2].Kill())
	require.Equal(t, ran, run("b"), "a minority is lost")
	r = do("ls", "--quorum", "--json")
	require.Equal(t, []string{"report"}, decode[listed](t, r).names(), "a majority is enough")
	require.Contains(t, r.errors, d.Nodes()[2].Addr, "the one that is down is named")
	r = do("break", "report", "--quorum", "--reason", "it hangs", "--yes")
	require.Equal(t, 0, r.code, r)
	_, err = c.Acquire(t.Context(), "report", client.WithMaxWait(soon))
	require.NoError(t, err, "free, though its holder renews it")
	_, metrics := get(t, url+"/metrics")
	require.Contains(t, metrics, "\nholdfast_server_held{")
	require.Contains(t, metrics, "look_complete 1\n", "long after the minority was lost")
	late, _ := serving(t, nil, append(addresses(d), "exporter", "--quorum", "--listen", "127.0.0.1:0", "--every", "50ms")...)
	require.NoError(t, d.Nodes()[1].Kill())
	complete := func(url, wanted string) {
		require.Eventually(t, func() bool {
			_, metrics := get(t, url+"/metrics")
			return strings.Contains(metrics, "look_complete "+wanted+"\n")
		}, soon, pollEvery)
	}
	complete(url, "0")
	complete(late, "0")
	require.NoError(t, d.Nodes()[2].Restart())
	_, err = d.Nodes()[2].Do(t.Context(), "FUNCTION", "LOAD", "REPLACE", functions.Source)
	require.NoError(t, err)
	complete(url, "1")
	complete(late, "1") // it was away when this began to look
}
