// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/loader/cmd/holdfast/internal/locks"
)

// Two have a lock of which there are three at most, and one keeps a slot. All commands about locks show
// that, and break takes it from one, and from all.
func TestALockThatSeveralHave(t *testing.T) {
	d, where := loaded(t)
	do := func(command string, more ...string) result { return where.do(t, command, more...) }
	for _, call := range []string{
		"acquire 1 lock:api web-1 600000 LIMIT 3", "acquire 1 lock:api web-2 500000 LIMIT 3 MINHOLD 400000",
		"acquire 1 lock:api web-3 700000 LIMIT 3", "release 1 lock:api web-2",
		"acquire 1 lock:queued web-3 600000", "wait 1 lock:queued web-4 600000 LIMIT 3",
		"wait 1 lock:queued web-5 600000 SHARED", "wait 1 lock:queued web-6 600000",
	} {
		_, err := d.Nodes()[0].Do(context.Background(), strings.Split("FCALL holdfast_"+call, " ")...)
		require.NoError(t, err)
	}

	r := do("inspect", "api")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, "3 holders (limited)")
	require.Regexp(t, `slot 1 +"web-1", owner "web-1", token \d+, lease 9m`, r.out)
	require.Regexp(t, `slot 2 +nobody: it is kept, lease 6m`, r.out)
	require.Regexp(t, `slot 3 +"web-3", owner "web-3", token \d+, lease 11m`, r.out)
	lock := decode[locks.Lock](t, do("inspect", "api", "--json"))
	require.Equal(t, "limited", lock.Kind)
	require.Len(t, lock.Holders, 3)
	require.Equal(t, []string{"web-1", "", "web-3"}, []string{lock.Holders[0].Owner, lock.Holders[1].Owner, lock.Holders[2].Owner})
	require.Equal(t, lock.Token, lock.Holders[2].Token)
	require.Equal(t, lock.Holders[0].Since, lock.Since, "since the first of them")

	require.Regexp(t, `api +3 holders \(limited\) +- +\S+ +\d+ +0\n`, do("ls").out)
	require.Equal(t, []string{"api", "queued"}, decode[listed](t, do("ls", "--json", "--holder", "web-3")).names())
	require.Empty(t, decode[listed](t, do("ls", "--json", "--holder", "web-2")).names())
	require.Equal(t, []string{"api", "queued"}, decode[listed](t, do("ls", "--json", "--older-than", "1ms")).names())
	require.Equal(t, []string{"api", "queued"}, decode[listed](t, do("ls", "--json", "--sort", "age")).names())
	r = do("queue", "queued")
	require.Regexp(t, `1 +"web-4" +limit 3 `, r.out)
	require.Regexp(t, `2 +"web-5" +shared `, r.out)
	require.Regexp(t, `3 +"web-6" +alone `, r.out)
	r = do("watch", "--json", "--count", "1")
	var look locks.Look
	require.NoError(t, json.Unmarshal([]byte(r.out), &look), r)
	require.Equal(t, 2, look.Held)
	require.Equal(t, "limited", look.Locks[1].Kind, "the other one has waiters")
	r = do("doctor", "--json")
	require.NotContains(t, r.out, "of the keys under", "it is a lock as any other")
	r = do("run", "api", "-n", "--print-holder", "--", "true")
	require.Equal(t, 1, r.code, r)
	require.Contains(t, r.errors, "3 have it (limited), 0 waiting")

	r = do("break", "api", "--owner", "web-9", "--reason", "it hangs", "--yes")
	require.Equal(t, 4, r.code, r)
	r = do("break", "api", "--owner", "web-1", "--reason", "it hangs", "--yes")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, fmt.Sprintf(`taken from "web-1" (token %d)`, lock.Holders[0].Token))
	after := decode[locks.Lock](t, do("inspect", "api", "--json"))
	require.Len(t, after.Holders, 2)
	require.Equal(t, []int{2, 3}, []int{after.Holders[0].Slot, after.Holders[1].Slot})
	require.Equal(t, "web-1", after.Broken.Owner)
	r = do("break", "api", "--reason", "all of it hangs", "--yes")
	require.Equal(t, 0, r.code, r)
	require.Contains(t, r.out, "taken from 2 holders (limited)")
	require.Contains(t, r.out, "nobody has it now")
	after = decode[locks.Lock](t, do("inspect", "api", "--json"))
	require.Empty(t, after.Broken.Owner, "all of several")
	require.Contains(t, do("inspect", "api").out, "taken from all who had it")
	require.True(t, strings.HasSuffix(after.Broken.Reason, "all of it hangs"))
}
