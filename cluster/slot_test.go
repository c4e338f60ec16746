// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/cluster"
)

func TestSlotOfTheSpecification(t *testing.T) {
	require.EqualValues(t, 0x31C3%cluster.Slots, cluster.Slot("123456789"), "the specification's check value")
	require.EqualValues(t, 0, cluster.Slot(""))
	require.Equal(t, cluster.Slot("{user1000}.following"), cluster.Slot("{user1000}.followers"))
}

func TestHashTag(t *testing.T) {
	for key, want := range map[string]string{
		"":                        "",
		"plain":                   "plain",
		"{user1000}.following":    "user1000",
		"foo{}{bar}":              "foo{}{bar}", // empty braces: the whole key
		"{}":                      "{}",
		"foo{{bar}}zap":           "{bar", // from the first { to the first } after it
		"foo{bar}{zap}":           "bar",
		"foo{bar":                 "foo{bar",
		"foo}bar{":                "foo}bar{",
		"}a{b}":                   "b",
		"{\x00\xff}binary":        "\x00\xff",
		"{ }space":                " ",
		"lock:{order:42}:payment": "order:42",
	} {
		require.Equal(t, want, cluster.HashTag(key), "key %q", key)
	}
}

func TestTagForEverySlot(t *testing.T) {
	for slot := range uint16(cluster.Slots) {
		tag := cluster.TagFor(slot)
		require.Equal(t, slot, cluster.Slot(tag))
		require.Equal(t, slot, cluster.Slot("lock:{"+tag+"}:anything"))
		require.LessOrEqual(t, len(tag), 4)
		require.NotContains(t, tag, "}")
	}
	require.Equal(t, cluster.TagFor(5), cluster.TagFor(5+cluster.Slots), "modulo the number of slots")
}

// Tags end up in the names of keys and channels that processes of different versions share: they
// must never change.
func TestTagForNeverChanges(t *testing.T) {
	for slot, want := range map[uint16]string{0: "1bz", 1: "emj", 2: "7lw", 8191: "7ho", 12182: "foo", 16383: "hia"} {
		require.Equal(t, want, cluster.TagFor(slot), "slot %d", slot)
	}
}

func TestTagForConcurrently(t *testing.T) {
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for slot := range uint16(100) {
				if cluster.Slot(cluster.TagFor(slot)) != slot {
					t.Errorf("wrong tag for slot %d", slot)
				}
			}
		})
	}
	all.Wait()
}

func FuzzSlot(f *testing.F) {
	for _, seed := range []string{"", "a", "{}", "{a}", "a{b}c", "{{a}}", "}{", "{", "\x00{\xff}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		tag := cluster.HashTag(key)
		if cluster.Slot(key) >= cluster.Slots {
			t.Fatalf("slot %d of %q", cluster.Slot(key), key)
		}
		if !strings.Contains(key, tag) || (tag == "" && key != "") {
			t.Fatalf("hash tag %q of %q", tag, key)
		}
		if tag == key {
			return
		}
		if strings.Contains(tag, "}") || !strings.Contains(key, "{"+tag+"}") {
			t.Fatalf("hash tag %q of %q", tag, key)
		}
		// What stands around the braces does not count.
		if cluster.Slot("{"+tag+"}other") != cluster.Slot(key) {
			t.Fatalf("%q and {%s} are not in one slot", key, tag)
		}
	})
}

func BenchmarkSlot(b *testing.B) {
	for b.Loop() {
		cluster.Slot("lock:{order:42}:payment")
	}
}
