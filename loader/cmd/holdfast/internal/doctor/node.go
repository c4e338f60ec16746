// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/rights"
	"github.com/holdfast-go/holdfast/loader/internal/risk"
)

// node is one server, and what it said. It belongs to one goroutine at a time.
type node struct {
	addr   string
	role   cluster.Role
	of     *Deployment
	opt    *Options
	redis  rueidis.Client
	dialed bool // redis is ours to close

	set   map[string]string // its settings; empty if the user may not see them
	info  map[string]string // INFO, or empty
	clock reading
	lacks []string // commands that it does not have
	found []Finding

	without bool // a library is missing

	refused map[string]string // what the server said to these commands
	gone    error             // it stopped answering
}

// asked are the settings that the checks read. A server leaves out what it does not know.
var asked = append([]string{"min-replicas-max-lag", "replica-read-only", "busy-reply-threshold", "lua-time-limit",
	"maxclients", "timeout", "tcp-keepalive", "cluster-require-full-coverage", "cluster-allow-replica-migration"},
	risk.Settings...)

func (n *node) examine(ctx context.Context) {
	n.set, n.info = map[string]string{}, map[string]string{}
	if set, err := n.do(ctx, append([]string{"CONFIG", "GET"}, asked...)...).AsStrMap(); n.sees("CONFIG GET", err) {
		n.set = set
	}
	if text, err := n.do(ctx, "INFO").ToString(); n.sees("INFO", err) {
		n.info = fields(text)
	}
	if n.refused["ROLE"]+n.refused["CLUSTER NODES"] != "" && n.gone == nil {
		n.listed(ctx)
	}
	for _, c := range nodeChecks {
		if n.gone == nil {
			c.look(n, ctx)
		}
	}
	n.blind()
}

func (n *node) find(code, mend, format string, args ...any) {
	n.found = append(n.found, find(code, n.addr, mend, format, args...))
}

// do sends one command, and waits no longer than the options say.
func (n *node) do(ctx context.Context, words ...string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, n.opt.Timeout)
	defer cancel()
	return n.redis.Do(ctx, n.redis.B().Arbitrary(words...).Build())
}

// sees reports whether a look succeeded. What the server refuses is told at the end.
func (n *node) sees(command string, err error) bool {
	var reply *rueidis.RedisError
	switch {
	case err == nil:
		return true
	case !errors.As(err, &reply) || reply.IsNil():
		n.gone = fmt.Errorf("%s: %s: %w", n.addr, command, err)
	default:
		n.refused[command] = reply.Error()
	}
	return false
}

// blind notes what the server refused: once for all that the user may not do.
func (n *node) blind() {
	var commands, rules []string
	for _, command := range slices.Sorted(maps.Keys(n.refused)) {
		if !strings.HasPrefix(n.refused[command], "NOPERM") {
			n.find("not-checked", "see why the server refuses it", "%s: %s", command, n.refused[command])
			continue
		}
		commands = append(commands, command)
		rules = append(rules, "+"+strings.ToLower(strings.ReplaceAll(command, " ", "|")))
	}
	if len(commands) > 0 {
		n.find("not-checked", "examine as an administrator too, or "+rights.SetUser(n.opt.User, rules...),
			"user %s may not use %s", n.opt.User, strings.Join(commands, ", "))
	}
}

// number is a setting or a field of INFO; what is missing is -1.
func number(from map[string]string, name string) int64 {
	value, err := strconv.ParseInt(from[name], 10, 64)
	if err != nil {
		return -1
	}
	return value
}

// fields reads INFO and CLUSTER INFO.
func fields(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // rueidis leaves the format of RESP3
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			all[name] = value
		}
	}
	return all
}

// configSet is what mends a setting for now and for the next start.
func configSet(pairs ...string) string {
	return "CONFIG SET " + strings.Join(pairs, " ") + ", then CONFIG REWRITE (or the same in redis.conf)"
}
