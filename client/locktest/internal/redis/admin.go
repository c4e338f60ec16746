// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

func init() {
	register(
		&spec{"PING", -1, subOK | always, 0, ping},
		&spec{"QUIT", -1, noScript | subOK | always, 0, quit},
		&spec{"HELLO", -1, noScript | always, 0, hello},
		&spec{"AUTH", -2, noScript | always, 0, auth},
		&spec{"SELECT", 2, always, 0, selectDB},
		&spec{"CLIENT|SETINFO", 4, noScript | always, 0, setInfo},
		&spec{"CLIENT|SETNAME", 3, noScript | always, 0, ok},
		&spec{"CLIENT|ID", 2, noScript | always, 0, func(c *call) any { return c.s.id }},
		&spec{"CLIENT|NO-EVICT", 3, noScript | always, 0, ok},
		&spec{"CLIENT|NO-TOUCH", 3, noScript | always, 0, ok},
		&spec{"CLIENT|CAPA", -3, noScript | always, 0, ok},
		&spec{"INFO", -1, always, 0, info},
		&spec{"CONFIG|GET", -3, noScript | always, 0, configGet},
		&spec{"CONFIG|SET", -4, noScript | always, 0, configSet},
		&spec{"DEBUG|SET-ACTIVE-EXPIRE", 3, noScript | always, 0, setActiveExpire},
		&spec{"COMMAND", -1, always, 0, func(*call) any { return []any{} }},
	)
}

func quit(c *call) any {
	c.s.quit = true
	return Status("OK")
}

func ok(*call) any { return Status("OK") }

func setInfo(c *call) any {
	if c.n.world.opt.Flavour == Redis70 {
		return Error("ERR unknown subcommand 'SETINFO'. Try CLIENT HELP.")
	}
	return Status("OK")
}

func setActiveExpire(c *call) any {
	c.n.lazy = c.args[0] == "0"
	c.n.armSweep()
	return Status("OK")
}

func selectDB(c *call) any {
	if c.args[0] != "0" {
		return c.n.world.unmodelled(c.n, "SELECT "+c.args[0])
	}
	return Status("OK")
}

func (n *Node) brand() string {
	return [...]string{"Redis", "Redis", "Valkey"}[n.world.opt.Flavour]
}

func (n *Node) version() string {
	return [...]string{"7.0.15", "8.0.2", "8.1.1"}[n.world.opt.Flavour]
}

func (n *Node) mode() (mode, role string) {
	switch {
	case n.topo != nil:
		mode = "cluster"
	default:
		mode = "standalone"
	}
	if n.primary != nil {
		return mode, "replica"
	}
	return mode, "master"
}

func info(c *call) any {
	n := c.n
	sections := c.args
	if len(sections) == 0 {
		sections = []string{"server", "clients", "memory", "persistence", "replication", "cluster"}
	}
	var b strings.Builder
	for _, section := range sections {
		lines, known := n.infoSection(strings.ToLower(section))
		if !known {
			return n.world.unmodelled(n, "INFO "+section)
		}
		fmt.Fprintf(&b, "# %s\r\n%s\r\n\r\n", strings.ToUpper(section[:1])+section[1:], strings.Join(lines, "\r\n"))
	}
	return b.String()
}

func (n *Node) infoSection(section string) ([]string, bool) {
	switch section {
	case "server":
		_, port := n.hostPort()
		lines := []string{}
		if n.world.opt.Flavour == Valkey {
			lines = append(lines, "server_name:valkey", "valkey_version:"+n.version())
		}
		mode, _ := n.mode()
		compatible := [...]string{"7.0.15", "8.0.2", "7.2.4"}[n.world.opt.Flavour]
		return append(lines, "redis_version:"+compatible, "redis_mode:"+mode, "run_id:"+n.runID,
			fmt.Sprint("process_id:", os.Getpid()), fmt.Sprint("tcp_port:", port),
			fmt.Sprint("server_time_usec:", n.clock.us()),
			fmt.Sprint("uptime_in_seconds:", int(time.Since(n.started).Seconds()))), true
	case "clients":
		return []string{fmt.Sprint("connected_clients:", len(n.sessions))}, true
	case "memory":
		return []string{"used_memory:1000000", "maxmemory:" + n.config["maxmemory"]}, true
	case "persistence":
		return []string{fmt.Sprintf("loading:%d", oneIf(n.conditions[Loading])), fmt.Sprint("rdb_changes_since_last_save:", n.offset)}, true
	case "replication":
		return n.infoReplication(), true
	case "cluster":
		return []string{fmt.Sprintf("cluster_enabled:%d", oneIf(n.topo != nil))}, true
	}
	return nil, false
}

func defaultConfig() map[string]string {
	return map[string]string{"maxmemory": "0", "maxmemory-policy": "noeviction", "appendonly": "no", "appendfsync": "everysec", "save": "",
		"min-replicas-to-write": "0", "min-replicas-max-lag": "10", "maxclients": "10000", "notify-keyspace-events": "", "busy-reply-threshold": "5000"}
}

// matches is for names of letters, '-' and '_', where a pattern of Redis means what one of Go does.
func matches(pattern, name string) bool {
	good, _ := path.Match(pattern, name)
	return good
}

func configGet(c *call) any {
	out := pairs{}
	for _, name := range sortedKeys(c.n.config) {
		if slices.ContainsFunc(c.args, func(p string) bool { return matches(strings.ToLower(p), name) }) {
			out = append(out, name, c.n.config[name])
		}
	}
	return out
}

// configSet changes maxmemory: anything but 0 is too little.
func configSet(c *call) any {
	_, bad := strconv.ParseUint(c.args[1], 10, 64)
	switch {
	case len(c.args) != 2 || !strings.EqualFold(c.args[0], "maxmemory"):
		return c.n.world.unmodelled(c.n, "CONFIG SET "+strings.Join(c.args, " "))
	case bad != nil:
		return Error("ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value")
	}
	c.n.config["maxmemory"] = c.args[1]
	return Status("OK")
}
