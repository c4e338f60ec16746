// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// serve loads a library. It must be called in a bubble of synctest, where time stands still.
func serve(tb testing.TB, source string) *library {
	tb.Helper()
	l := &library{effects: effects[source]}
	if l.effects == nil {
		l.effects = map[edge]Effect{}
		effects[source] = l.effects
	}
	l.world = redis.New(redis.Options{Hooks: redis.Hooks{Publish: func(p redis.Published) {
		l.messages = append(l.messages, p.Channel+" "+p.Message)
	}}})
	tb.Cleanup(l.world.Close)
	l.node = l.world.Node("10.0.0.1:6379")
	l.node.Do("DEBUG", "SET-ACTIVE-EXPIRE", "0")
	if got := l.node.Do("FUNCTION", "LOAD", source); got != functions.Library {
		tb.Fatalf("FUNCTION LOAD: %v", got)
	}
	conn, err := l.world.Host("").Dial(context.Background(), l.node.Addr(), nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	listen := fmt.Sprintf("*%d\r\n$10\r\nSSUBSCRIBE\r\n", 1+maxClients)
	for i := range maxClients {
		listen += fmt.Sprintf("$%d\r\n%s\r\n", len(channel(i, true)), channel(i, true))
	}
	if _, err := io.WriteString(conn, listen); err != nil {
		tb.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	synctest.Wait()
	return l
}
