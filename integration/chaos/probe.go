// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/integration/server"
)

// soon bounds what the harness itself asks of a server, which can be dead or paused.
const soon = 2 * time.Second

// probe sends one command to one server.
func probe(n *server.Node, command ...string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	return n.Do(ctx, command...)
}

// tell is probe where only the error matters.
func tell(n *server.Node, command ...string) error {
	_, err := probe(n, command...)
	return err
}

// info is one field of INFO, "" if a server does not answer.
func info(n *server.Node, section, field string) string {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	return n.Info(ctx, section, field)
}

// roleOf is master or slave, "" if a server does not answer.
func roleOf(n *server.Node) string { return info(n, "replication", "role") }

// until looks at a condition until it holds. It returns false if that takes too long.
func until(within time.Duration, condition func() bool) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); ; {
		if condition() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		<-tick.C
	}
}
