// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/cluster"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// nodeOf returns the beds of all primaries, each with the library, and a way to find the one that
// has a key's slot.
func clusterBeds(t *testing.T, f server.Flavour) func(key string) *bed {
	t.Helper()
	d := server.Cluster(t, server.WithFlavour(f))
	var beds []*bed
	for _, n := range d.Nodes()[:3] {
		b := &bed{tb: t, d: d, addr: n.Addr, run: "cluster"}
		b.c = b.dial(2)
		b.load()
		beds = append(beds, b)
	}
	return func(key string) *bed {
		t.Helper()
		for _, b := range beds {
			if _, moved := b.c.do("EXISTS", key).(failure); !moved {
				return b
			}
		}
		t.Fatalf("no primary has the slot of %q", key)
		return nil
	}
}

// A channel of another slot has no subscriber, as far as a function can see: who waits there is passed over.
// One in the slot of the lock is told, with and without the plain case.
func TestChannelsOfOtherSlots(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		on := clusterBeds(t, f)
		k := "lock two"
		b := on(k)
		here, there := "", "" // a channel of another slot on the same node as the key, and one on another node
		for i := 0; here == "" || there == ""; i++ {
			switch ch := fmt.Sprint("channel", i); {
			case cluster.Slot(ch) == cluster.Slot(k):
			case on(ch) == b:
				here = ch
			default:
				there = ch
			}
		}
		sub := b.subscribe(here)
		b.take(k, "a", long)
		b.wait(k, "b", here, 1)
		b.wait(k, "c", there, 2)
		b.wait(k, "d", "", 3)
		want(t, b.call(functions.Release, k, "a"), 1)
		b.expectLock(k, "d", 1, 0)
		sub.silent()
		b.wait(k, "e", here, 1)
		b.wait(k, "f", "{"+k+"}:channel", 2)
		own := b.subscribe("{" + k + "}:channel")
		want(t, b.call(functions.Release, k, "d"), 1) // straight down: the plain case
		want(t, grant(t, own.message()).owner, "f")
		sub.silent()
	})
}
