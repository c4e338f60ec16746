// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"strconv"
	"strings"
)

// settings of every data node. Nothing is persisted: a node that is killed and
// restarted is empty, unless the Spec says "appendonly yes" or the like.
// Replication starts at once instead of after the default five seconds.
var dataSettings = [][2]string{
	{"save", `""`},
	{"appendonly", "no"},
	{"enable-debug-command", "yes"},
	{"repl-diskless-sync", "yes"},
	{"repl-diskless-sync-delay", "0"},
	{"repl-ping-replica-period", "1"},
}

// A replica takes over however stale it is, because tests fail primaries over
// at will, and replicas stay with their primary so that the shape is known.
var clusterSettings = [][2]string{
	{"cluster-enabled", "yes"},
	{"cluster-config-file", "nodes.conf"},
	{"cluster-node-timeout", "2000"},
	{"cluster-replica-validity-factor", "0"},
	{"cluster-allow-replica-migration", "no"},
}

// conf writes a configuration file, directive by directive.
type conf struct{ strings.Builder }

func (c *conf) set(name, value string) { fmt.Fprintf(c, "%s %s\n", name, value) }

func (c *conf) setAll(settings [][2]string) {
	for _, kv := range settings {
		c.set(kv[0], kv[1])
	}
}

// dataConf returns the settings of one data node; the node itself adds its
// port, address and directory when it starts.
func (s *Spec) dataConf(primary string) string {
	var c conf
	c.setAll(dataSettings)
	if s.Kind == KindCluster {
		c.setAll(clusterSettings)
	}
	if primary != "" {
		c.set("replicaof", strings.Replace(primary, ":", " ", 1))
	}
	c.setAll(s.Config)
	for _, line := range s.ACL {
		fmt.Fprintln(&c, line)
	}
	return c.String()
}

// placeConf returns the directives that tie a node to its place.
func (n *Node) placeConf() string {
	var c conf
	c.set("port", strconv.Itoa(n.port))
	c.set("bind", "127.0.0.1")
	c.set("protected-mode", "no")
	c.set("daemonize", "no")
	c.set("dir", strconv.Quote(n.proc.Dir()))
	if n.busPort > 0 {
		c.set("cluster-port", strconv.Itoa(n.busPort))
	}
	return c.String()
}
