// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken below the range from which systems number outgoing
// connections (32768 on Linux, 49152 elsewhere). In that range a client that
// redials a killed server can be given the server's own port, connect to
// itself, and keep the port from the server that is restarted.
const lowestPort, highestPort = 10000, 32000

// freePort returns a port of the loopback interface on which nothing listens.
// Another process can take it first: who uses it must be ready to ask again.
func freePort() (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("server: no free port between %d and %d", lowestPort, highestPort)
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
