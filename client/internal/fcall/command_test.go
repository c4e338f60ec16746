// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTTL(t *testing.T) {
	require.Equal(t, "30000", TTL(30*time.Second))
	require.Equal(t, "2", TTL(time.Millisecond+1), "rounded up: a lease is never shorter than was asked for")
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		call Call
		want string
	}{
		{Call{Verb: Acquire}, "holdfast_acquire w 30000"},
		{Call{Verb: Acquire, Tokens: 1}, "holdfast_acquire w 30000"},
		{Call{Verb: Acquire, Tokens: 5, Guard: "9", MinHold: "7"}, "holdfast_acquire w 30000 TOKENS 5 GUARD 9 MINHOLD 7"},
		{Call{Verb: Acquire, Hold: "h", Guard: "9"}, "holdfast_acquire_reentrant w 30000 h GUARD 9"},
		{Call{Verb: Wait, Channel: "ch"}, "holdfast_wait w 30000 CHANNEL ch"},
		{Call{Verb: Wait}, "holdfast_wait w 30000"},
		{Call{Verb: Wait, Channel: "ch", MaxWait: time.Second, Hold: "h", Guard: "9"},
			"holdfast_wait w 30000 CHANNEL ch MAXWAIT 1000 HOLD h GUARD 9"},
		{Call{Verb: Wait, MaxWait: time.Millisecond, Tokens: 2, MinHold: "7"}, "holdfast_wait w 30000 MAXWAIT 1 TOKENS 2 MINHOLD 7"},
		{Call{Verb: Acquire, Crowd: 3, Guard: "9", MinHold: "7"}, "holdfast_acquire w 30000 LIMIT 3 GUARD 9 MINHOLD 7"},
		{Call{Verb: Acquire, Crowd: -1}, "holdfast_acquire w 30000 SHARED"},
		{Call{Verb: Wait, Channel: "ch", Crowd: -1, Guard: "9"}, "holdfast_wait w 30000 CHANNEL ch SHARED GUARD 9"},
		{Call{Verb: Wait, MaxWait: time.Second, Crowd: 1}, "holdfast_wait w 30000 MAXWAIT 1000 LIMIT 1"},
		{Call{Verb: Holders, From: 101}, "holdfast_holders 101"},
		{Call{Verb: Renew, Fence: 77}, "holdfast_renew w 30000 FENCE 77"},
		{Call{Verb: Renew, Fence: 77, Hold: "h", Raise: 80}, "holdfast_renew w 30000 FENCE 77 HOLD h RAISE 80"},
		{Call{Verb: Renew}, "holdfast_renew w 30000"},
		{Call{Verb: Release}, "holdfast_release w"},
		{Call{Verb: Release, Fence: 77}, "holdfast_release w LAST 77"},
		{Call{Verb: Release, Hold: "h"}, "holdfast_release w HOLD h"},
		{Call{Verb: Release, All: true}, "holdfast_release w ALL"},
		{Call{Verb: Leave, Hold: "h", Fence: 77}, "holdfast_leave w HOLD h FENCE 77"},
		{Call{Verb: Break, Reason: "by hand"}, "holdfast_break OWNER w REASON by hand"},
		{Call{Verb: Inspect}, "holdfast_inspect"},
	} {
		c.call.Owner, c.call.TTL = "w", "30000"
		require.Equal(t, c.want, strings.Join(append([]string{c.call.function()}, c.call.args(nil)...), " "))
	}
}
