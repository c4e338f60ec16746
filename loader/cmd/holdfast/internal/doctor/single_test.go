// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/doctor"
)

// planted is something wrong with a single server. It returns what undoes it.
type planted struct {
	code  string
	plant func(p *patient) (undo func())
}

func setting(code string, pairs ...string) planted {
	return planted{code, func(p *patient) func() { return p.setFor(pairs...) }}
}

func command(code string, undo []string, words ...string) planted {
	return planted{code, func(p *patient) func() {
		n := p.d.Nodes()[0]
		p.do(n, words...)
		return func() { p.do(n, undo...) }
	}}
}

// library loads other code under some name.
func library(code, source string) planted {
	return planted{code, func(p *patient) func() {
		n := p.d.Nodes()[0]
		p.do(n, "FUNCTION", "FLUSH")
		if source != "" {
			p.do(n, "FUNCTION", "LOAD", source)
		}
		return func() {
			p.do(n, "FUNCTION", "FLUSH")
			p.do(n, "FUNCTION", "LOAD", functions.Source)
		}
	}}
}

func version(v string) string {
	return strings.Replace(functions.Source, "local VERSION = '"+functions.Version+"'", "local VERSION = '"+v+"'", 1)
}

var onOneServer = []planted{
	setting("eviction", "maxmemory", "100mb", "maxmemory-policy", "volatile-lru"),
	setting("no-persistence", "appendonly", "no", "save", ""),
	setting("rdb-only", "appendonly", "no", "save", "3600 1"),
	setting("appendfsync-no", "appendfsync", "no"),
	setting("appendfsync-everysec", "appendfsync", "everysec"),
	setting("idle-timeout", "timeout", "300"),
	setting("tcp-keepalive", "tcp-keepalive", "0"),
	setting("busy-reply", "busy-reply-threshold", "60000"),
	{"memory-full", func(p *patient) func() {
		return p.setFor("maxmemory-policy", "noeviction", "maxmemory", p.d.Nodes()[0].Info(ctx, "memory", "used_memory"))
	}},
	{"slow-scripts", func(p *patient) func() {
		n := p.d.Nodes()[0]
		p.do(n, "EVAL", "local t = redis.call('TIME') local from = t[1] * 1000000 + t[2] "+
			"repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] > from + 2200000 return 1", "0")
		return func() { p.do(n, "SLOWLOG", "RESET") }
	}},
	{"slow-functions", func(p *patient) func() { // none is slow, so the bound is low
		bound := p.opt.SlowScript
		p.opt.SlowScript = time.Nanosecond
		back := p.setFor("slowlog-log-slower-than", "0")
		p.do(p.d.Nodes()[0], "FCALL_RO", functions.Inspect, "1", "lock:ours")
		return func() { back(); p.opt.SlowScript = bound; p.do(p.d.Nodes()[0], "SLOWLOG", "RESET") }
	}},
	{"latency-spikes", func(p *patient) func() {
		n := p.d.Nodes()[0]
		back := p.setFor("latency-monitor-threshold", "100")
		p.do(n, "DEBUG", "SLEEP", "0.15")
		return func() { back(); p.do(n, "LATENCY", "RESET") }
	}},
	command("foreign-keys", []string{"DEL", "lock:list"}, "LPUSH", "lock:list", "x"),
	command("foreign-keys", []string{"DEL", "lock:hash"}, "EVAL",
		"redis.call('HSET', KEYS[1], 'a', 'b') redis.call('PEXPIRE', KEYS[1], 60000) return 1", "1", "lock:hash"),
	command("keys-without-ttl", []string{"DEL", "lock:stuck"}, "SET", "lock:stuck", "x"),
	command("plain-strings", []string{"DEL", "lock:theirs"}, "SET", "lock:theirs", "x", "PX", "60000"),
	{"persistence-failing", func(p *patient) func() {
		n := p.d.Nodes()[0]
		fails := func(fail bool) func() bool {
			return func() bool { return (n.Info(ctx, "persistence", "rdb_last_bgsave_status") == "err") == fail }
		}
		back := p.setFor("dbfilename", "appendonlydir") // a file cannot take a directory's place
		p.do(n, "BGSAVE", "SCHEDULE")
		require.Eventually(p.t, fails(true), soon, pollEvery)
		return func() {
			back()
			p.do(n, "BGSAVE", "SCHEDULE")
			require.Eventually(p.t, fails(false), soon, pollEvery)
		}
	}},
	library("library-missing", ""),
	library("library-outdated", version("0.0.1")),
	library("library-newer", version("99.0.0")),
	library("library-differs", functions.Source+"\n-- patched"),
	library("library-foreign", "#!lua name=other\nredis.register_function('holdfast_acquire', function() return 1 end)"),
	{"maxclients", func(p *patient) func() {
		var idle []net.Conn
		for range 30 {
			c, err := net.Dial("tcp", p.d.Nodes()[0].Addr)
			require.NoError(p.t, err)
			idle = append(idle, c)
		}
		require.Eventually(p.t, func() bool {
			n, _ := strconv.Atoi(p.d.Nodes()[0].Info(ctx, "clients", "connected_clients"))
			return n > 30
		}, soon, pollEvery)
		back := p.setFor("maxclients", "34")
		return func() {
			for _, c := range idle {
				_ = c.Close()
			}
			require.Eventually(p.t, func() bool {
				n, _ := strconv.Atoi(p.d.Nodes()[0].Info(ctx, "clients", "connected_clients"))
				return n < 30
			}, soon, pollEvery)
			back()
		}
	}},
}

func TestEachFaultOfOneServerIsFound(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		p := healthy(t, server.Single(t, server.WithConfig("enable-protected-configs", "yes"), server.WithFlavour(f)))
		p.do(p.d.Nodes()[0], "FCALL", functions.Acquire, "1", "lock:ours", "me", "600000")
		for _, c := range onOneServer {
			t.Run(c.code, func(t *testing.T) {
				was := p.t
				p.t = t
				defer func() { p.t = was }()
				defer c.plant(p)()
				p.found(c.code)
			})
		}
		p.found()
	})
}

// What a user lives with is a note, and everything else is as bad as it was.
func TestAcceptedFindingsAreNotes(t *testing.T) {
	p := healthy(t, server.Single(t, server.Owned()))
	p.setFor("appendonly", "no", "save", "", "tcp-keepalive", "0")
	p.opt.Accept = []string{"no-persistence"}
	found := p.found("no-persistence", "tcp-keepalive")
	require.Equal(t, doctor.Note, found["no-persistence"].Severity)
	require.True(t, found["no-persistence"].Accepted)
	require.Equal(t, doctor.Slow, found["tcp-keepalive"].Severity)
	require.False(t, found["tcp-keepalive"].Accepted)
}

// A server that is named by its name and by its IP is one.
func TestOneServerWithTwoAddresses(t *testing.T) {
	p := healthy(t, server.Single(t, server.Owned()))
	p.set("tcp-keepalive", "0")
	_, port, err := net.SplitHostPort(p.d.Nodes()[0].Addr)
	require.NoError(t, err)
	other := patientOf(t, p.d, rueidis.ClientOption{InitAddress: []string{"localhost:" + port}, ForceSingleClient: true})
	report := doctor.Examine(ctx, []doctor.Deployment{p.Deployment, other.Deployment}, p.opt)
	require.Empty(t, report.Errors)
	require.Len(t, report.Nodes, 1)
	require.Len(t, report.Findings, 1)
}

// What a user may not do is found, with the line that mends it; what it may not look at is a note.
func TestRightsAreExamined(t *testing.T) {
	const may = "user %n on >pw ~lock:* &lock:* +ping +fcall +fcall_ro +hmget +hget +hset +hdel +hlen +exists +type " +
		"+getrange +pttl +pexpireat +del +time +spublish +ssubscribe +pubsub|shardnumsub +client|tracking +client|caching " +
		"+acl|dryrun +command|info +config|get +info +role +function|list +slowlog|get +latency|latest +scan"
	user := func(name, less string) string { return strings.ReplaceAll(may, "%n", name) + " " + less }
	d := server.Single(t, server.Owned(), server.WithACL(
		user("fit", ""),
		user("hasty", "-hset -pexpireat"),
		user("deaf", "resetchannels"),
		user("keyless", "resetkeys ~other:*"),
		user("key", "resetkeys ~other:*"),
		user("slow", "-client|tracking"),
		user("blind", "-config|get -info -slowlog -latency|latest -scan -acl|dryrun -command|info"),
		user("roleless", "-role"),
		user("plain", "-role -function|list")))
	healthy(t, d)
	as := func(name string, codes ...string) map[string]doctor.Finding {
		opt := d.ClientOption()
		opt.Username, opt.Password, opt.ForceSingleClient = name, "pw", true
		return patientOf(t, d, opt).found(codes...)
	}
	as("fit")
	found := as("hasty", "rights-missing")
	require.Contains(t, found["rights-missing"].Mend, "ACL SETUSER hasty +hset +pexpireat,")
	found = as("deaf", "rights-missing", "messages-refused")
	require.Contains(t, found["rights-missing"].Mend, "ACL SETUSER deaf '&lock:*',")
	found = as("keyless", "rights-missing")
	require.Contains(t, found["rights-missing"].Mend, "ACL SETUSER keyless '~lock:*',")
	found = as("key", "rights-missing") // a word of what the server says
	require.Contains(t, found["rights-missing"].Mend, "ACL SETUSER key '~lock:*',")
	found = as("slow", "rights-missing", "tracking-refused")
	require.Contains(t, found["rights-missing"].Mend, "ACL SETUSER slow '+client|tracking',")
	found = as("blind", "not-checked")
	require.Equal(t, "user blind may not use ACL DRYRUN, COMMAND INFO, CONFIG GET, INFO, LATENCY LATEST, SLOWLOG GET",
		found["not-checked"].What)
	require.Contains(t, found["not-checked"].Mend, "ACL SETUSER blind '+acl|dryrun' '+command|info' '+config|get' +info ")
	require.Equal(t, "user plain may not use FUNCTION LIST, ROLE", as("plain", "not-checked")["not-checked"].What)

	// The library is looked at all the same.
	as("roleless", "not-checked")
	library("library-differs", functions.Source+"\n-- patched").plant(healthy(t, d))
	require.Equal(t, "user roleless may not use ROLE", as("roleless", "not-checked", "library-differs")["not-checked"].What)
	undo := library("library-missing", "").plant(patientOf(t, d, d.ClientOption()))
	require.Equal(t, "the node has no library holdfast", as("roleless", "not-checked", "library-missing")["library-missing"].What)
	undo()

	p := patientOf(t, d, d.ClientOption())
	p.opt.As = "fit"
	p.found()
	p.opt.As = "keyless"
	p.found("rights-missing")
	p.opt.As = "nobody"
	require.Contains(t, p.found("rights-missing")["rights-missing"].Mend, "ACL SETUSER nobody on '>PASSWORD' '~lock:*' '&lock:*' +ping ")
	p.opt.As, p.opt.Replicas = "fit", true
	require.Contains(t, p.found("rights-missing")["rights-missing"].Mend, "ACL SETUSER fit +wait,")
}

func TestDisabledCommandsAreFound(t *testing.T) {
	d := server.Single(t, server.WithConfig("rename-command", `FCALL ""`), server.WithConfig("rename-command", `HDEL gone`),
		server.WithConfig("appendonly", "yes"), server.WithConfig("appendfsync", "always"))
	d.Load(t)
	found := patientOf(t, d, d.ClientOption()).found("command-missing")
	require.Contains(t, found["command-missing"].What, "FCALL, HDEL")
}

func TestASlowNetworkIsFound(t *testing.T) {
	d := server.Single(t, server.Owned())
	p := healthy(t, d)
	proxy := server.NewProxy(t, d.Nodes()[0].Addr)
	proxy.Delay(30 * time.Millisecond)
	far := patientOf(t, d, rueidis.ClientOption{InitAddress: []string{proxy.Addr}, ForceSingleClient: true})
	far.opt.SlowTrip = 25 * time.Millisecond
	far.found("round-trip")
	p.found()
}
