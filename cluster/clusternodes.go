// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// parseClusterNodes reads the reply of CLUSTER NODES: one line per node,
//
//	<id> <ip:port@cport[,hostname[,name=value]...]> <flags> <primary's id> <ping> <pong> <epoch> <link> <slot> <slot> ...
//
// (https://redis.io/docs/latest/commands/cluster-nodes/). asked is the address that was asked: a
// node that has not met another one yet does not know its own host.
func parseClusterNodes(reply, asked string, connected map[string]rueidis.Client) ([]Node, error) {
	var nodes []Node
	primaries := map[string]string{} // id of a replica's primary, by the replica's id
	addrOf := map[string]string{}
	// In RESP3 the reply is a verbatim string, and rueidis leaves its format in front of the text.
	for line := range strings.Lines(strings.TrimPrefix(reply, "txt:")) {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			return nil, fmt.Errorf("CLUSTER NODES: unexpected line %q", line)
		}
		flags := strings.Split(fields[2], ",")
		node := Node{
			ID:    fields[0],
			Addr:  memberAddr(fields[1], asked, slices.Contains(flags, "myself"), connected),
			Role:  Primary,
			Slots: slotRanges(fields[8:]),
			Down:  slices.Contains(flags, "fail"),
		}
		// A node in handshake is not a member yet. One without an address cannot be reached by anybody. But
		// slots can still be its own: another node, an empty one, may have come to its address.
		noaddr := slices.Contains(flags, "noaddr")
		if slices.Contains(flags, "handshake") || noaddr && len(node.Slots) == 0 {
			continue
		}
		if noaddr {
			node.Addr, node.Down = node.ID, true
		}
		if slices.Contains(flags, "slave") || slices.Contains(flags, "replica") {
			node.Role = Replica
			primaries[node.ID] = fields[3]
		}
		addrOf[node.ID] = node.Addr
		nodes = append(nodes, node)
	}
	for i := range nodes {
		nodes[i].Primary = addrOf[primaries[nodes[i].ID]]
	}
	return nodes, nil
}

// memberAddr makes an address of <ip:port@cport[,hostname,...]>: the form that the client is
// connected by, if it is, else by the ip, else by the hostname.
func memberAddr(field, asked string, myself bool, connected map[string]rueidis.Client) string {
	endpoint, hostname, _ := strings.Cut(field, ",")
	hostname, _, _ = strings.Cut(hostname, ",")
	if strings.Contains(hostname, "=") {
		hostname = "" // an auxiliary field, not a name
	}
	endpoint, _, _ = strings.Cut(endpoint, "@")
	colon := strings.LastIndexByte(endpoint, ':') // an IPv6 address comes without brackets
	if colon < 0 {
		return endpoint
	}
	host, port := endpoint[:colon], endpoint[colon+1:]
	if host == "" {
		host, _, _ = net.SplitHostPort(asked)
	}
	byIP, byName := net.JoinHostPort(host, port), net.JoinHostPort(hostname, port)
	switch {
	case connected[byIP] != nil:
		return byIP
	case hostname != "" && connected[byName] != nil:
		return byName
	case myself:
		return asked
	default:
		return byIP
	}
}

// slotRanges reads "0-5460" and "7000"; "[93-<-id]" and "[93->-id]" are slots on their way, which
// still count where they were.
func slotRanges(fields []string) [][2]uint16 {
	var ranges [][2]uint16
	for _, field := range fields {
		if strings.HasPrefix(field, "[") {
			continue
		}
		low, high, isRange := strings.Cut(field, "-")
		if !isRange {
			high = low
		}
		first, err1 := strconv.ParseUint(low, 10, 16)
		last, err2 := strconv.ParseUint(high, 10, 16)
		if err1 == nil && err2 == nil {
			ranges = append(ranges, [2]uint16{uint16(first), uint16(last)})
		}
	}
	return ranges
}
