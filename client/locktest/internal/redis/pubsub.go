// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"slices"
	"strings"
)

// kind is that of a channel. They are counted apart.
type kind int

const (
	ordinary kind = iota
	ofShard
)

// word is a word of replies and messages for this kind.
func (k kind) word(w string) string { return [...]string{"", "s"}[k] + w }

func init() {
	for k, prefix := range []string{ordinary: "", ofShard: "S"} {
		k, belongs, infix := kind(k), []flag{0, sharded}[k], []string{"", "SHARD"}[k]
		of := func(run func(*call, kind) any) func(*call) any { return func(c *call) any { return run(c, k) } }
		register(
			&spec{prefix + "SUBSCRIBE", -2, noScript | subOK | channelAll | belongs, 0, of((*call).subscribe)},
			&spec{prefix + "UNSUBSCRIBE", -1, noScript | subOK | belongs, 0, of((*call).unsubscribe)},
			&spec{prefix + "PUBLISH", 3, channelArg | belongs, 0, of((*call).publish)},
			&spec{"PUBSUB|" + infix + "NUMSUB", -2, 0, 0, of((*call).numsub)},
		)
	}
}

func (c *call) subscribe(k kind) any {
	if c.s.internal {
		return Error("ERR Node.Do cannot subscribe: it has no connection")
	}
	mine, all := c.s.channels[k], c.n.channels[k]
	var out several
	for _, ch := range c.args {
		if !mine[ch] {
			mine[ch] = true
			all[ch] = append(all[ch], c.s)
		}
		out = append(out, push{k.word("subscribe"), ch, len(mine)})
	}
	return out
}

func (c *call) unsubscribe(k kind) any {
	names := c.args
	if len(names) == 0 {
		names = sortedKeys(c.s.channels[k])
	}
	var out several
	for _, ch := range names {
		c.s.unsubscribe(k, ch)
		out = append(out, push{k.word("unsubscribe"), ch, len(c.s.channels[k])})
	}
	if len(out) == 0 {
		out = several{push{k.word("unsubscribe"), nil, 0}}
	}
	return out
}

func (s *session) unsubscribe(k kind, channel string) {
	delete(s.channels[k], channel)
	all := s.node.channels[k]
	if all[channel] = without(all[channel], s); len(all[channel]) == 0 {
		delete(all, channel)
	}
}

func (s *session) subscribed() bool { return len(s.channels[ordinary])+len(s.channels[ofShard]) > 0 }

// publish delivers a message here, and sends it on: to the replicas, or over the cluster's bus. It
// returns how many connections of this node got it.
func (c *call) publish(k kind) any {
	n, channel, text := c.n, c.args[0], c.args[1]
	got := n.deliver(k, channel, text, false)
	if n.topo != nil {
		n.forward(k, channel, text)
	} else if len(n.replicas) > 0 {
		n.unit.messages = append(n.unit.messages, message{k, channel, text})
	}
	return got
}

// deliver sends a message to the subscribers here.
func (n *Node) deliver(k kind, channel, message string, forwarded bool) int {
	subscribers := n.channels[k][channel]
	for _, s := range subscribers {
		s.pushMessage(push{k.word("message"), channel, message})
	}
	if f := n.world.opt.Hooks.Publish; f != nil {
		f(Published{n, channel, message, len(subscribers), forwarded})
	}
	return len(subscribers)
}

func (c *call) numsub(k kind) any {
	out := []any{}
	for _, ch := range c.args {
		out = append(out, ch, len(c.n.channels[k][ch]))
	}
	return out
}

// dropShardChannels tells the subscribers of slots that this node does not serve any more.
func (n *Node) dropShardChannels(gone func(slot int) bool) {
	for _, ch := range sortedKeys(n.channels[ofShard]) {
		if !gone(slotOf(ch)) {
			continue
		}
		for _, s := range slices.Clone(n.channels[ofShard][ch]) {
			s.unsubscribe(ofShard, ch)
			s.push(push{"sunsubscribe", ch, len(s.channels[ofShard])})
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
