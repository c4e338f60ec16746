// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"slices"
	"strings"
)

func init() {
	register(&spec{"ACL|SETUSER", -3, noScript | always, 0, aclSetUser})
}

// user is who a connection is. Categories but @all, selectors and %RW patterns are not modelled.
type user struct {
	name       string
	on, nopass bool
	passwords  []string
	commands   map[string]bool // by their names and '@all'; a sub-command counts more than its container
	all        bool
	keys       []string
	channels   []string
}

func allPowerful() *user {
	return &user{name: "default", on: true, nopass: true, all: true, commands: map[string]bool{}, keys: []string{"*"}, channels: []string{"*"}}
}

// everything is what words that begin anew let a user do, nothing where they are not named.
var everything = map[string][]string{"allkeys": {"*"}, "allchannels": {"*"}}

// rule applies one word of ACL SETUSER. It returns false if it is not one that this package knows.
func (u *user) rule(word string) bool {
	switch word {
	case "on", "off":
		u.on = word == "on"
	case "nopass", "resetpass":
		u.nopass, u.passwords = word == "nopass", nil
	case "allkeys", "resetkeys":
		u.keys = everything[word]
	case "allchannels", "resetchannels":
		u.channels = everything[word]
	case "+@all", "-@all":
		u.all, u.commands = word == "+@all", map[string]bool{}
	default:
		return len(word) > 1 && u.one(word[0], word[1:])
	}
	return true
}

// one applies a word that adds or takes away one thing.
func (u *user) one(sign byte, name string) bool {
	switch sign {
	case '>':
		u.passwords, u.nopass = append(u.passwords, name), false
	case '~':
		u.keys = append(u.keys, name)
	case '&':
		u.channels = append(u.channels, name)
	case '+', '-':
		name = strings.ToUpper(name)
		u.commands[name] = sign == '+'
		return commands[name] != nil || containers[name]
	default:
		return false
	}
	return true
}

func (u *user) mayRun(sp *spec) bool {
	if len(u.commands) == 0 {
		return u.all
	}
	if may, said := u.commands[sp.name]; said {
		return may
	}
	container, _, _ := strings.Cut(sp.name, "|")
	if may, said := u.commands[container]; said {
		return may
	}
	return u.all
}

func matchesAny(patterns []string, s string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return p == "*" || glob(p, s) })
}

// permits returns the error of a user who may not run a command, with the words for a function or
// for a client.
func (n *Node) permits(u *user, sp *spec, args []string, inFunction bool) Error {
	if sp.flags&noAuth != 0 || u == nil {
		return ""
	}
	if !u.mayRun(sp) {
		return n.denied(u, sp, "command", inFunction)
	}
	for _, key := range sp.keysOf(args) {
		if !matchesAny(u.keys, key) {
			return n.denied(u, sp, "key", inFunction)
		}
	}
	for _, ch := range sp.channelsOf(args) {
		if !matchesAny(u.channels, ch) {
			return n.denied(u, sp, "channel", inFunction)
		}
	}
	return ""
}

// denials are what a user may not, in the words of Redis 7.0 for a function and for a client, and in those of
// all others.
var denials = map[string][3]string{
	"command": {"run this command or subcommand", "run the '%s' command",
		"User %s has no permissions to run the '%s' command"},
	"key": {"access at least one of the keys mentioned in the command arguments",
		"access one of the keys used as arguments", "No permissions to access a key"},
	"channel": {"publish to the channel mentioned in the command",
		"access one of the channels used as arguments", "No permissions to access a channel"},
}

func (n *Node) denied(u *user, sp *spec, what string, inFunction bool) Error {
	old, words := n.world.opt.Flavour == Redis70, denials[what]
	if what == "command" {
		command := strings.ToLower(sp.name)
		words[1], words[2] = fmt.Sprintf(words[1], command), fmt.Sprintf(words[2], u.name, command)
	}
	switch {
	case inFunction && old:
		return Error("ERR The user executing the script can't " + words[0])
	case inFunction:
		return Error("ERR ACL failure in script: " + words[2])
	case old:
		return Error("NOPERM this user has no permissions to " + words[1])
	}
	return Error("NOPERM " + words[2])
}

func aclSetUser(c *call) any {
	name, users := c.args[0], c.n.users
	if users[name] == nil {
		users[name] = &user{name: name, commands: map[string]bool{}}
	}
	for _, word := range c.args[1:] {
		if !users[name].rule(word) {
			return Error("ERR Error in ACL SETUSER modifier '" + word + "': Syntax error")
		}
	}
	return Status("OK")
}

func (n *Node) login(s *session, name, password string) Error {
	u := n.users[name]
	if u == nil || !u.on || !u.nopass && !slices.Contains(u.passwords, password) {
		return "WRONGPASS invalid username-password pair or user is disabled."
	}
	s.user = u
	return ""
}

func auth(c *call) any {
	name, password := "default", c.args[0]
	switch {
	case len(c.args) == 2:
		name, password = c.args[0], c.args[1]
	case c.n.users["default"].nopass:
		return Error("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	}
	if err := c.n.login(c.s, name, password); err != "" {
		return err
	}
	return Status("OK")
}
