// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"strings"
)

type flag int

const (
	write      flag = 1 << iota
	read            // registers client tracking
	denyOOM         // may need memory
	noScript        // not from functions
	subOK           // by a RESP2 connection that is subscribed
	always          // while loading or busy
	channelArg      // its first word is a channel
	channelAll      // all its words are channels
	sharded         // its channels belong to slots
)

// spec describes a command as COMMAND does: arity counts the command's words, negative is 'at
// least'.
type spec struct {
	name  string
	arity int
	flags flag
	keys  int // 1: the first argument is one; -1: all are
	run   func(*call) any
}

// call is one run of a command.
type call struct {
	n    *Node
	s    *session
	spec *spec
	args []string // without the command's own words
}

var commands = map[string]*spec{}
var containers = map[string]bool{}

func register(specs ...*spec) {
	for _, sp := range specs {
		commands[sp.name] = sp
		if container, _, ok := strings.Cut(sp.name, "|"); ok {
			containers[container] = true
		}
	}
}

// find returns the command of those words, and what follows its own words.
func find(cmd []string) (*spec, []string, Error) {
	name, own := strings.ToUpper(cmd[0]), 1
	if containers[name] {
		if len(cmd) < 2 {
			return nil, nil, wrongNumber(name)
		}
		name, own = name+"|"+strings.ToUpper(cmd[1]), 2
	}
	sp := commands[name]
	switch {
	case sp == nil:
		return nil, nil, ""
	case sp.arity >= 0 && len(cmd) != sp.arity || len(cmd) < -sp.arity:
		return sp, nil, wrongNumber(name)
	}
	return sp, cmd[own:], ""
}

func wrongNumber(command string) Error {
	return Error("ERR wrong number of arguments for '" + strings.ToLower(command) + "' command")
}

// execute runs a command of a client.
func (n *Node) execute(s *session, cmd []string) any {
	sp, args, err := find(cmd)
	if sp == nil && err == "" {
		err = n.world.unmodelled(n, strings.Join(cmd[:min(2, len(cmd))], " "))
	}
	if err == "" {
		err = n.check(s, sp, cmd, args)
	}
	if err != "" {
		s.asking = false
		return err
	}
	n.begin()
	defer n.commit()
	reply := n.perform(&call{n: n, s: s, spec: sp, args: args})
	n.afterCommand(s, sp)
	return reply
}

// afterCommand ends what holds for one command only.
func (n *Node) afterCommand(s *session, sp *spec) {
	if sp.name != "ASKING" {
		s.asking = false
	}
	if sp.name != "CLIENT|CACHING" {
		s.caching = false
	}
	if sp.flags&write != 0 || sp.name == "FCALL" {
		s.offset = n.offset
		if n.unit.changed() {
			s.offset++ // commit counts the unit that is under way
		}
	}
}

// check refuses a command in the order in which Redis does.
func (n *Node) check(s *session, sp *spec, cmd, args []string) Error {
	if n.refuse != nil {
		if err := n.refuse(cmd); err != "" {
			return err
		}
	}
	if err := n.redirect(s, sp, args); err != "" {
		return err
	}
	if err := n.condition(sp, args); err != "" {
		return err
	}
	if !s.enc.resp3 && !s.internal && s.subscribed() && sp.flags&subOK == 0 {
		return Error(fmt.Sprintf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", strings.ToLower(sp.name)))
	}
	return ""
}

// condition refuses what the server's state forbids.
func (n *Node) condition(sp *spec, args []string) Error {
	flags := n.effectiveFlags(sp, args)
	switch {
	case flags&denyOOM != 0 && n.full():
		return "OOM command not allowed when used memory > 'maxmemory'."
	case flags&write != 0 && n.primary == nil && n.conditions[SaveFailed]:
		return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error."
	case flags&write != 0 && n.primary == nil && n.conditions[TooFewReplicas]:
		return "NOREPLICAS Not enough good replicas to write."
	case flags&write != 0 && n.primary != nil:
		return "READONLY You can't write against a read only replica."
	case flags&always == 0 && n.conditions[Loading]:
		return Error("LOADING " + n.brand() + " is loading the dataset in memory")
	case flags&always == 0 && n.conditions[Busy]:
		return Error("BUSY " + n.brand() + " is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.")
	}
	return ""
}

func (n *Node) full() bool { return n.conditions[Full] || n.config["maxmemory"] != "0" }

// perform runs a command that nothing forbids, for a client or a function.
func (n *Node) perform(c *call) any {
	reply := c.spec.run(c)
	if c.spec.flags&read != 0 {
		n.remember(c)
	}
	return reply
}

// keysOf returns the keys among a command's arguments.
func (sp *spec) keysOf(args []string) []string {
	if sp.name == "FCALL" || sp.name == "FCALL_RO" {
		keys, _, _ := splitKeys(args[1:])
		return keys
	}
	switch sp.keys {
	case 0:
		return nil
	case 1:
		return args[:1]
	}
	return args
}

// slotted returns the keys and channels that belong to slots.
func (sp *spec) slotted(args []string) []string {
	if sp.flags&sharded != 0 {
		return sp.channelsOf(args)
	}
	return sp.keysOf(args)
}

func (sp *spec) channelsOf(args []string) []string {
	switch {
	case sp.flags&channelAll != 0:
		return args
	case sp.flags&channelArg != 0 && len(args) > 0:
		return args[:1]
	}
	return nil
}
