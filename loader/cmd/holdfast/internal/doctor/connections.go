// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"strconv"
)

// crowded is the share of maxclients at which a warning is due.
const crowded = 0.9

func (n *node) connections(context.Context) {
	most, now := number(n.set, "maxclients"), number(n.info, "connected_clients")
	if most > 0 && float64(now) >= crowded*float64(most) {
		n.find("maxclients", configSet("maxclients", strconv.FormatInt(2*most, 10))+", and see who connects: CLIENT LIST",
			"%d clients of maxclients %d are connected", now, most)
	}
	if idle := number(n.set, "timeout"); idle > 0 {
		n.find("idle-timeout", configSet("timeout", "0"), "timeout is %d: clients that are idle for that many seconds "+
			"are cut off", idle)
	}
	if n.set["tcp-keepalive"] == "0" {
		n.find("tcp-keepalive", configSet("tcp-keepalive", "60"), "tcp-keepalive is 0")
	}
}
