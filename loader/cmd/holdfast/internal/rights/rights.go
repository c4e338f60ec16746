// SPDX-License-Identifier: Apache-2.0

// Package rights knows the least rights that a user of Holdfast needs, and tries them on a server.
package rights

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// Role is what a user is for.
type Role string

// The roles.
const (
	Client   Role = "client"   // takes locks
	Loader   Role = "loader"   // brings the library
	Operator Role = "operator" // looks at locks, and breaks them
)

// Need is what a user of a role is to be able to do.
type Need struct {
	Role     Role
	Prefix   string // of keys and channels; none for a loader
	Cluster  bool
	Sentinel bool // the servers are behind Sentinel
	Guard    bool // client: Config.Guard, package quorum
	Replicas bool // client: Config.Replicas
	Unload   bool // loader: unload, and load --force over another's library
}

// right is a rule of an ACL, and a command that shows whether a user has it.
type right struct {
	rule string
	try  []string
}

// Validate says what is wrong with the need.
func (n Need) Validate() error {
	switch {
	case !slices.Contains([]Role{Client, Loader, Operator}, n.Role):
		return fmt.Errorf("--for must be client, loader or operator, not %q", n.Role)
	case n.Role != Client && (n.Guard || n.Replicas):
		return errors.New("--guard and --replicas are for --for client")
	case n.Role != Loader && n.Unload:
		return errors.New("--unload is for --for loader")
	case n.Role != Loader && strings.ContainsFunc(n.Prefix, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return errors.New("--prefix: an ACL pattern has no blanks and no control characters")
	}
	return nil
}

// Rules are the words behind ACL SETUSER and a user's name, but for the password. They begin with
// reset: what the user could do before is gone.
func (n Need) Rules() []string {
	rules := []string{"reset"}
	if n.Role != Loader {
		pattern := locks.Literal(n.Prefix) + "*"
		rules = append(rules, "~"+pattern, "&"+pattern)
	}
	for _, r := range n.rights() {
		if !slices.Contains(rules, r.rule) {
			rules = append(rules, r.rule)
		}
	}
	return rules
}

// SetUser is the line that gives a user rules.
func SetUser(user string, rules ...string) string {
	words := []string{"ACL", "SETUSER", Quoted(user)}
	for _, rule := range rules {
		words = append(words, Quoted(rule))
	}
	return strings.Join(words, " ")
}

// Quoted is a word as a shell reads it, and redis-cli.
func Quoted(word string) string {
	if strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+_-.:") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (n Need) rights() []right {
	key, channel := n.Prefix+"holdfast-acl-check", n.Prefix+"holdfast-acl-check"
	var all []right
	need := func(rule string, try ...string) { all = append(all, right{"+" + rule, try}) }
	need("ping", "PING")
	if n.Sentinel || n.Role == Loader {
		need("role", "ROLE") // rueidis asks whom the sentinels name
	}
	if n.Role == Loader {
		need("function|list", "FUNCTION", "LIST")
		need("function|load", "FUNCTION", "LOAD", "REPLACE", functions.Source)
		if n.Unload {
			need("function|delete", "FUNCTION", "DELETE", functions.Library)
		}
		// the memory of guarded locks, over an upgrade
		need("multi", "MULTI")
		need("exec", "EXEC")
		need("fcall", "FCALL", functions.Memory, "0")
		need("time", "TIME")
		need("info", "INFO", "replication")
	} else {
		n.calls(need, key, channel)
	}
	switch n.Role {
	case Client:
		need("ssubscribe", "SSUBSCRIBE", channel)
		need("client|tracking", "CLIENT", "TRACKING", "ON")
		need("client|caching", "CLIENT", "CACHING", "YES")
		if n.Guard {
			need("info", "INFO", "replication")
		}
		if n.Replicas {
			need("wait", "WAIT", "1", "1")
		}
	case Operator:
		need("scan", "SCAN", "0")
	}
	if n.Cluster {
		need("cluster|nodes", "CLUSTER", "NODES")
		need("cluster|slots", "CLUSTER", "SLOTS")
		need("cluster|shards", "CLUSTER", "SHARDS") // in place of SLOTS, with Redis 8 and Valkey 8
		if n.Role != Loader {
			need("asking", "ASKING")
		}
	}
	return all
}

// calls are what every caller of the functions needs, because each command inside them is checked
// against the caller. All of it or nothing: an error in the middle of a function undoes nothing.
func (n Need) calls(need func(string, ...string), key, channel string) {
	need("fcall", "FCALL", functions.Acquire, "1", key, "owner", "1000")
	need("fcall_ro", "FCALL_RO", functions.Inspect, "1", key)
	need("hmget", "HMGET", key, "owner")
	need("hget", "HGET", key, "owner")
	need("hset", "HSET", key, "owner", "nobody")
	need("hdel", "HDEL", key, "owner")
	need("hlen", "HLEN", key)
	need("exists", "EXISTS", key)
	need("type", "TYPE", key)
	need("getrange", "GETRANGE", key, "0", "1")
	need("pttl", "PTTL", key)
	need("pexpireat", "PEXPIREAT", key, "1")
	need("del", "DEL", key)
	need("time", "TIME")
	need("spublish", "SPUBLISH", channel, "")
	need("pubsub|shardnumsub", "PUBSUB", "SHARDNUMSUB", channel)
}
