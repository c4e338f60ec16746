package redis

import (
	"slices"
	"strings"
)

func init() {
	register(
		&spec{"SUBSCRIBE", -2, noScript | subOK | channelAll, 0, 0, 0, func(c *call) any { return c.subscribe(false) }},
		&spec{"SSUBSCRIBE", -2, noScript | subOK | channelAll | sharded, 0, 0, 0, func(c *call) any { return c.subscribe(true) }},
		&spec{"UNSUBSCRIBE", -1, noScript | subOK, 0, 0, 0, func(c *call) any { return c.unsubscribe(false) }},
		&spec{"SUNSUBSCRIBE", -1, noScript | subOK | sharded, 0, 0, 0, func(c *call) any { return c.unsubscribe(true) }},
		&spec{"PUBLISH", 3, channelArg, 0, 0, 0, func(c *call) any { return c.n.publish(c.args[0], c.args[1], false) }},
		&spec{"SPUBLISH", 3, channelArg | sharded, 0, 0, 0, func(c *call) any { return c.n.publish(c.args[0], c.args[1], true) }},
		&spec{"PUBSUB|SHARDNUMSUB", -2, 0, 0, 0, 0, func(c *call) any { return c.numsub(c.n.shards) }},
		&spec{"PUBSUB|NUMSUB", -2, 0, 0, 0, 0, func(c *call) any { return c.numsub(c.n.channels) }},
		&spec{"PUBSUB|SHARDCHANNELS", -2, 0, 0, 0, 0, func(c *call) any { return c.list(c.n.shards) }},
		&spec{"PUBSUB|CHANNELS", -2, 0, 0, 0, 0, func(c *call) any { return c.list(c.n.channels) }},
	)
}

func (c *call) subscribe(shard bool) any {
	word, mine, all := "subscribe", c.s.channels, c.n.channels
	if shard {
		word, mine, all = "ssubscribe", c.s.shards, c.n.shards
	}
	if c.s.internal {
		return Error("ERR Node.Do cannot subscribe: it has no connection")
	}
	var out several
	for _, ch := range c.args {
		if !mine[ch] {
			mine[ch] = true
			all[ch] = append(all[ch], c.s)
		}
		out = append(out, push{word, ch, c.s.subscriptions(shard)})
	}
	return out
}

// subscriptions is the count in replies: shard channels are counted apart.
func (s *session) subscriptions(shard bool) int {
	if shard {
		return len(s.shards)
	}
	return len(s.channels)
}

func (c *call) unsubscribe(shard bool) any {
	word, mine, all := "unsubscribe", c.s.channels, c.n.channels
	if shard {
		word, mine, all = "sunsubscribe", c.s.shards, c.n.shards
	}
	names := c.args
	if len(names) == 0 {
		names = sortedKeys(mine)
	}
	var out several
	for _, ch := range names {
		if mine[ch] {
			delete(mine, ch)
			removeSubscriber(all, ch, c.s)
		}
		out = append(out, push{word, ch, c.s.subscriptions(shard)})
	}
	if len(out) == 0 {
		out = several{push{word, nil, 0}}
	}
	return out
}

func removeSubscriber(all map[string][]*session, channel string, s *session) {
	rest := slices.DeleteFunc(all[channel], func(o *session) bool { return o == s })
	if len(rest) == 0 {
		delete(all, channel)
		return
	}
	all[channel] = rest
}

// publish delivers a message here, and sends it on: to the replicas, or over the cluster's bus. It
// returns how many connections of this node got it.
func (n *Node) publish(channel, message string, shard bool) int {
	got := n.deliver(channel, message, shard, false)
	if n.topo != nil {
		n.forward(channel, message, shard)
	} else if len(n.replicas) > 0 && n.unit != nil {
		word := "PUBLISH"
		if shard {
			word = "SPUBLISH"
		}
		n.unit.effects = append(n.unit.effects, []string{word, channel, message})
	}
	return got
}

// deliver sends a message to the subscribers here.
func (n *Node) deliver(channel, message string, shard, forwarded bool) int {
	word, all := "message", n.channels
	if shard {
		word, all = "smessage", n.shards
	}
	subscribers := slices.Clone(all[channel])
	for _, s := range subscribers {
		s.pushMessage(push{word, channel, message})
	}
	if f := n.world.opt.Hooks.Publish; f != nil {
		f(Published{n, channel, message, shard, len(subscribers), forwarded})
	}
	return len(subscribers)
}

func (c *call) numsub(all map[string][]*session) any {
	out := []any{}
	for _, ch := range c.args {
		out = append(out, ch, len(all[ch]))
	}
	return out
}

func (c *call) list(all map[string][]*session) any {
	out := []any{}
	for _, ch := range sortedKeys(all) {
		if len(c.args) == 0 || glob(c.args[0], ch) {
			out = append(out, ch)
		}
	}
	return out
}

// dropShardChannels tells the subscribers of slots that this node does not serve any more.
func (n *Node) dropShardChannels(gone func(slot int) bool) {
	for _, ch := range sortedKeys(n.shards) {
		if !gone(slotOf(ch)) {
			continue
		}
		for _, s := range slices.Clone(n.shards[ch]) {
			delete(s.shards, ch)
			removeSubscriber(n.shards, ch, s)
			s.push(push{"sunsubscribe", ch, len(s.shards)})
		}
	}
}

// Subscribers returns how many connections of this node are subscribed to a shard channel.
func (n *Node) Subscribers(shardChannel string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.shards[shardChannel])
}

func ping(c *call) any {
	if !c.s.enc.resp3 && len(c.s.channels)+len(c.s.shards) > 0 {
		return []any{"pong", strings.Join(c.args, "")}
	}
	if len(c.args) == 1 {
		return c.args[0]
	}
	return Status("PONG")
}
