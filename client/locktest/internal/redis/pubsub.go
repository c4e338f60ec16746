// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"slices"
	"strings"
)

func init() {
	register(
		&spec{"SSUBSCRIBE", -2, noScript | subOK | channelAll | sharded, 0, subscribe},
		&spec{"SUNSUBSCRIBE", -1, noScript | subOK | sharded, 0, unsubscribe},
		&spec{"SPUBLISH", 3, channelArg | sharded, 0, publish},
		&spec{"PUBSUB|SHARDNUMSUB", -2, 0, 0, numsub},
	)
}

func subscribe(c *call) any {
	if c.s.internal {
		return Error("ERR Node.Do cannot subscribe: it has no connection")
	}
	mine, all := c.s.channels, c.n.channels
	var out several
	for _, ch := range c.args {
		if !mine[ch] {
			mine[ch] = true
			all[ch] = append(all[ch], c.s)
		}
		out = append(out, push{"ssubscribe", ch, len(mine)})
	}
	return out
}

func unsubscribe(c *call) any {
	names := c.args
	if len(names) == 0 {
		names = sortedKeys(c.s.channels)
	}
	var out several
	for _, ch := range names {
		c.s.unsubscribe(ch)
		out = append(out, push{"sunsubscribe", ch, len(c.s.channels)})
	}
	if len(out) == 0 {
		out = several{push{"sunsubscribe", nil, 0}}
	}
	return out
}

func (s *session) unsubscribe(channel string) {
	delete(s.channels, channel)
	all := s.node.channels
	if all[channel] = without(all[channel], s); len(all[channel]) == 0 {
		delete(all, channel)
	}
}

func (s *session) subscribed() bool { return len(s.channels) > 0 }

// publish delivers a message here, and in a Cluster sends it on over the bus. It returns how many
// connections of this node got it.
func publish(c *call) any {
	n, channel, text := c.n, c.args[0], c.args[1]
	got := n.deliver(channel, text, false)
	if n.topo != nil {
		n.forward(channel, text)
	}
	return got
}

// deliver sends a message to the subscribers here.
func (n *Node) deliver(channel, message string, forwarded bool) int {
	subscribers := n.channels[channel]
	for _, s := range subscribers {
		s.pushMessage(push{"smessage", channel, message})
	}
	if f := n.world.opt.Hooks.Publish; f != nil {
		f(Published{n, channel, message, len(subscribers), forwarded})
	}
	return len(subscribers)
}

func numsub(c *call) any {
	out := []any{}
	for _, ch := range c.args {
		out = append(out, ch, len(c.n.channels[ch]))
	}
	return out
}

// dropShardChannels tells the subscribers of slots that this node does not serve any more.
func (n *Node) dropShardChannels(gone func(slot int) bool) {
	for _, ch := range sortedKeys(n.channels) {
		if !gone(slotOf(ch)) {
			continue
		}
		for _, s := range slices.Clone(n.channels[ch]) {
			s.unsubscribe(ch)
			s.push(push{"sunsubscribe", ch, len(s.channels)})
		}
	}
}

func ping(c *call) any {
	if !c.s.enc.resp3 && c.s.subscribed() {
		return []any{"pong", strings.Join(c.args, "")}
	}
	if len(c.args) == 1 {
		return c.args[0]
	}
	return Status("PONG")
}
