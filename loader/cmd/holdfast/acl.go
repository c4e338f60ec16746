// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/loader"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/rights"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/terminal"
)

// placeholder stands where the password goes.
const placeholder = ">PASSWORD"

func aclCommand(a *app) *cobra.Command {
	var need rights.Need
	var as string
	var check, file bool
	cmd := &cobra.Command{
		Use:     "acl --for client|loader|operator",
		GroupID: groupDeploy,
		Short:   "Print the ACL line of a user with the least rights for a role",
		Long: `Acl prints the ACL line of a user that may do what its role needs, and no more: a client takes locks, a loader runs
load and verify, an operator runs ls, inspect, queue, break and watch. It asks no server. The line begins with "reset",
so it also takes away what a user of that name has. ACLs are not replicated: give the line to every node, replicas too.
With --file it is a line of a users.acl file. Put a password in place of PASSWORD, and keep the file's line of the user
"default": without one, everybody is that user, and may do all.

With --check it asks the server, by ACL DRYRUN, whether the user --as has these rights. If there is no such user, it
tries the line on one of a random name, which cannot log in and is deleted again. Exit code 3 says that rights are
missing. To check, the caller's own user needs +acl|dryrun +acl|setuser +acl|deluser, and to find all nodes +role, in a
Cluster +cluster|nodes.

"verify" also needs +config|get to name risky settings. It is not in the line, because it shows passwords too.`,
		Example: `  holdfast acl --for client
  holdfast acl --for client --cluster --guard --prefix '{shop}:lock:' --as shop
  holdfast acl --for operator --as oncall --file >> users.acl
  holdfast acl --for operator --as oncall --check --addr redis-1:6379 --user admin`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(need.Validate(), userName(as)); err != nil {
				return usageError{err}
			}
			if check {
				return a.checkACL(cmd.Context(), need, as)
			}
			a.printACL(need, as, file)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&need.Role), "for", "", "`role` of the user: client, loader or operator")
	flags.StringVar(&as, "as", "", "`name` of the user (default holdfast- and its role)")
	flags.StringVar(&need.Prefix, "prefix", defaultPrefix, "`text` that the keys of the locks begin with")
	flags.BoolVar(&need.Cluster, "cluster", false, "in a Cluster")
	flags.BoolVar(&need.Sentinel, "sentinel", false, "behind Sentinel")
	flags.BoolVar(&need.Guard, "guard", false, "client: with Config.Guard, or on a quorum")
	flags.BoolVar(&need.Replicas, "replicas", false, "client: with Config.Replicas")
	flags.BoolVar(&need.Unload, "unload", false, "loader: may also unload, and load --force over another's library")
	flags.BoolVar(&file, "file", false, "print the line of a users.acl file (aclfile of redis.conf) instead")
	flags.BoolVar(&check, "check", false, "ask the server whether the user has these rights")
	offer(cmd, "for", rights.Client, rights.Loader, rights.Operator)
	cmd.PreRun = func(*cobra.Command, []string) {
		if as == "" {
			as = "holdfast-" + string(need.Role)
		}
	}
	return cmd
}

func userName(name string) error {
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("--as: a user's name has no blanks and no control characters")
	}
	return nil
}

func (a *app) printACL(need rights.Need, as string, file bool) {
	rules := append([]string{"reset", "on", placeholder}, need.Rules()[1:]...)
	line := rights.SetUser(as, rules...)
	if file { // nothing is quoted there, and a user begins with no rights
		rules = rules[1:]
		line = "user " + as + " " + strings.Join(rules, " ")
	}
	if !a.cfg.json {
		fmt.Fprintln(a.stdout, line)
		return
	}
	a.printJSON(struct {
		head
		User  string   `json:"user"`
		Rules []string `json:"rules"`
		Line  string   `json:"line"`
	}{a.head(exitOK), as, rules, line})
}

// checkACL asks every node.
func (a *app) checkACL(ctx context.Context, need rights.Need, as string) error {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.timeout)
	defer cancel()
	deployments, missed := deploymentsOf(ctx, &a.cfg)
	var failed []error
	checks := []rights.Check{}
	asked := map[string]bool{} // a replica may be named beside its primary
	for _, option := range deployments {
		some, err := a.checkDeployment(ctx, option, need, as, asked)
		checks, failed = append(checks, some...), append(failed, err)
	}
	err := errors.Join(append(failed, errorsOf(missed, func(addr string) bool { return asked[addr] }))...)
	code := exitOK
	for _, c := range checks {
		if len(c.Missing) > 0 {
			code = exitDiffers
		}
	}
	if slices.ContainsFunc(apart(err), func(err error) bool { return !errors.Is(err, errPresumed) }) {
		code = exitFailed
	}
	a.printChecks(as, checks, code, err)
	return exit(code)
}

func (a *app) checkDeployment(ctx context.Context, option rueidis.ClientOption, need rights.Need, as string,
	asked map[string]bool) ([]rights.Check, error) {
	redis, err := connect(ctx, option)
	if err != nil {
		return nil, a.cfg.explainConnect(err)
	}
	defer redis.Close()
	var checks []rights.Check
	var failed []error
	addrs := slices.Sorted(maps.Keys(redis.Nodes()))
	nodes, err := cluster.Topology(ctx, redis)
	if err != nil {
		failed = append(failed, fmt.Errorf("only the nodes that are connected were asked: %w", err))
	}
	for _, n := range nodes {
		if !slices.Contains(addrs, n.Addr) {
			addrs = append(addrs, n.Addr)
		}
	}
	for _, addr := range addrs {
		if asked[addr] {
			continue
		}
		asked[addr] = true
		check, err := a.checkNode(ctx, redis, option, addr, need, as)
		check.Addr = addr
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", addr, err))
			continue
		}
		checks = append(checks, check)
	}
	return checks, errors.Join(failed...)
}

// checkNode asks one node, by a connection of its own if the client has none: to a replica, for example.
func (a *app) checkNode(ctx context.Context, redis rueidis.Client, option rueidis.ClientOption, addr string,
	need rights.Need, as string) (rights.Check, error) {
	node := redis.Nodes()[addr]
	if node == nil {
		dialing, cancel := context.WithTimeout(ctx, a.cfg.nodeTimeout())
		defer cancel()
		dialed, err := within(dialing, func() (rueidis.Client, error) { return loader.Dialer(option)(dialing, addr) })
		if err != nil {
			return rights.Check{}, a.cfg.explainConnect(err)
		}
		defer dialed.Close()
		node = dialed
	}
	return need.Try(ctx, node, as)
}

func (a *app) printChecks(as string, checks []rights.Check, code int, err error) {
	if a.cfg.json {
		a.printJSON(struct {
			head
			User   string         `json:"user"`
			Checks []rights.Check `json:"checks"`
		}{a.head(code, err), as, checks})
		return
	}
	paint := terminal.PainterFor(a.stdout)
	for _, c := range checks {
		who := "user " + as
		if c.Temporary {
			who = "no user " + as + " yet, a temporary one with the line"
		}
		if len(c.Missing) == 0 {
			fmt.Fprintf(a.stdout, "%s: %s: %s\n", c.Addr, who, paint.Paint(terminal.Green, "has all rights"))
			continue
		}
		fmt.Fprintf(a.stdout, "%s: %s: %s\n", c.Addr, who, paint.Paint(terminal.Red, "lacks rights"))
		for _, missing := range c.Missing {
			fmt.Fprintln(a.stdout, "   ", missing)
		}
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "holdfast acl: %v\n", err)
	}
}
