// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
)

// ownerOf returns the primary of a key, and one of the others.
func ownerOf(w *redis.World, key string, primaries []*redis.Node) (owner, other *redis.Node) {
	if owner, other = w.Owner(key), primaries[0]; owner == other {
		other = primaries[1]
	}
	return owner, other
}

// open returns a client of locks on a single server.
func open(t *testing.T, w *redis.World, host, addr string) *client.Client {
	t.Helper()
	return onServer(t, w, host, addr, client.Config{})
}

func onServer(t *testing.T, w *redis.World, host, addr string, cfg client.Config) *client.Client {
	t.Helper()
	return bed.Open(t, bed.Single(w, host, addr), cfg)
}

var ctx = context.Background()
