// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/rights"
)

// oldest is the first version of Redis with functions. Valkey says 7.2 or later here.
const oldest = 7

func (n *node) version(context.Context) {
	text := n.info["redis_version"]
	major, err := strconv.Atoi(strings.SplitN(text, ".", 2)[0])
	if err == nil && major < oldest {
		n.find("server-version", "upgrade the server to Redis 7.0 or later, or to Valkey", "the server is %s", text)
	}
}

// commands looks for those that rename-command took away.
func (n *node) commands(ctx context.Context) {
	names := n.need().Commands()
	about, err := n.do(ctx, append([]string{"COMMAND", "INFO"}, names...)...).ToArray()
	if !n.sees("COMMAND INFO", err) {
		return
	}
	for i := range min(len(about), len(names)) {
		if about[i].IsNil() {
			n.lacks = append(n.lacks, strings.ToUpper(names[i]))
		}
	}
	if len(n.lacks) > 0 {
		n.find("command-missing", "take the lines rename-command "+strings.Join(n.lacks, ", rename-command ")+
			" out of redis.conf, restart the server, and limit users by ACLs",
			"the server does not know %s", strings.Join(n.lacks, ", "))
	}
}

// need is what a client of this deployment must be able to do.
func (n *node) need() rights.Need {
	return rights.Need{Role: rights.Client, Prefix: n.opt.Prefix, Guard: n.opt.Guard, Replicas: n.opt.Replicas,
		Cluster: n.inCluster(), Sentinel: n.of.Master != ""}
}

func (n *node) inCluster() bool { return n.of.Client.Mode() == rueidis.ClientModeCluster }

// rights asks by ACL DRYRUN, which runs nothing.
func (n *node) rights(ctx context.Context) {
	if len(n.lacks) > 0 {
		return // DRYRUN fails for a command that is not there
	}
	ctx, cancel := context.WithTimeout(ctx, 2*n.opt.Timeout)
	defer cancel()
	need, user := n.need(), cmp.Or(n.opt.As, n.opt.User)
	const everywhere = ", then ACL SAVE or CONFIG REWRITE; at every node, because ACLs are not replicated"
	check, err := need.Look(ctx, n.redis, user)
	if errors.Is(err, rights.ErrNoUser) {
		rules := append([]string{"on", ">PASSWORD"}, need.Rules()[1:]...)
		n.find("rights-missing", rights.SetUser(user, rules...)+everywhere, "there is no user %s", user)
		return
	}
	if !n.sees("ACL DRYRUN", err) || len(check.Missing) == 0 {
		return
	}
	rules := need.Grant(check)
	n.find("rights-missing", rights.SetUser(user, rules...)+everywhere, "user %s lacks %s", user, strings.Join(rules, " "))
}
