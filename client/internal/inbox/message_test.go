// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type stray struct {
	owner string
	Grant
}

// listening is an inbox with a subscription that nobody feeds but the test, and the grants to owners
// that nobody claims.
func listening() (in *Inbox, s *subscription, strays *[]stray) {
	strays = &[]stray{}
	in = New(Config{Prefix: "lock:", ID: "id", Unclaimed: func(owner string, g Grant) {
		*strays = append(*strays, stray{owner, g})
	}})
	s = &subscription{channel: in.channel(0), claims: map[string][]*Claim{},
		state: &State{Channel: in.channel(0), over: make(chan struct{})}, idle: time.NewTimer(time.Hour)}
	in.subs[0] = s
	return in, s, strays
}

// received collects what a claim of the owner receives.
func received(in *Inbox, owner string) (c *Claim, messages *[]Grant) {
	messages = &[]Grant{}
	return in.Claim(0, owner, func(m Grant) { *messages = append(*messages, m) }), messages
}

func TestAGrantReachesItsOwner(t *testing.T) {
	in, s, strays := listening()
	_, a := received(in, "a")
	spaced, b := received(in, "with a space")
	in.deliver(s, "77 1700000000000 5 12 with a space job 1")
	in.deliver(s, "78 5 1 12 with a space")
	require.Empty(t, *a)
	require.Equal(t, []Grant{{77, 1700000000000, 5, "job 1"}, {78, 5, 1, ""}}, *b)
	require.False(t, (*b)[0].Look())
	in.deliver(s, "79 5 2 6 nobody job")
	spaced.Drop()
	in.deliver(s, "80 5 1 12 with a space")
	require.Len(t, *b, 2, "it was dropped")
	require.Equal(t, []stray{{"nobody", Grant{79, 5, 2, "job"}}, {"with a space", Grant{80, 5, 1, ""}}}, *strays)
}

// Two waits of one process with one owner string are two acquisitions: both receive, and ask.
func TestClaimsOfOneOwnerReceiveTheSame(t *testing.T) {
	in, s, _ := listening()
	first, one := received(in, "job")
	second, two := received(in, "job")
	in.deliver(s, "77 1 1 3 job")
	require.Len(t, *one, 1)
	require.Len(t, *two, 1)
	first.Drop()
	in.deliver(s, "78 1 1 3 job")
	require.Len(t, *one, 1)
	require.Len(t, *two, 2, "only the other one was dropped")
	second.Drop()
	require.Empty(t, s.claims)
}

// A look says that the server knows more. Nobody is to be notified of one for an owner that is gone.
func TestALookReachesItsOwner(t *testing.T) {
	in, s, strays := listening()
	_, spaced := received(in, "with a space")
	_, other := received(in, "with")
	in.deliver(s, "look with a space")
	in.deliver(s, "look nobody")
	require.Equal(t, []Grant{{}}, *spaced)
	require.True(t, (*spaced)[0].Look())
	require.Empty(t, *other)
	require.Empty(t, *strays)
}

var nonsense = []string{
	"", " ", "look", "look ", "looks a", "LOOK a", "broken 1 1 a b", "echo 1", "77", "77 1", "77 1 1", "77 1 1 1", "77 1 1 1 ",
	"x 1 1 1 a", "77 x 1 1 a", "77 1 x 1 a", "77 1 1 x a", "0 1 1 1 a", "-1 1 1 1 a", "77 1 0 1 a", "77 1 -5 1 a", "77 1 1 0 a",
	"77 1 1 -1 a", "77 1 1 2 a", "77 1 1 9223372036854775807 a", "77 1 1 1 akey", "99999999999999999999 1 1 1 a", "9007199254740992 1 1 1 a", "nan 1 1 1 a",
	"0x10 1 1 1 a", "77  1 1 1 a", " 77 1 1 1 a",
}

func TestNonsenseIsIgnored(t *testing.T) {
	in, s, strays := listening()
	_, a := received(in, "a")
	for _, message := range nonsense {
		in.deliver(s, message)
		require.Empty(t, *a, "%q", message)
		require.Empty(t, *strays, "%q", message)
	}
}

// FuzzMessages delivers what anybody with SPUBLISH on the channel can send.
func FuzzMessages(f *testing.F) {
	for _, message := range nonsense {
		f.Add(message, "a", "key", int64(1))
	}
	f.Add("77 1700000000000 5 12 with a space job 1", "with a space", "job 1", int64(77))
	f.Fuzz(func(t *testing.T, message, owner, key string, fence int64) {
		in, s, strays := listening()
		_, got := received(in, owner)
		in.deliver(s, message)
		for _, m := range *got {
			*strays = append(*strays, stray{owner, m})
		}
		require.LessOrEqual(t, len(*strays), 1)
		for _, g := range *strays {
			if message == "look "+g.owner && g.Grant == (Grant{}) {
				continue
			}
			require.True(t, g.Fence > 0 && g.Tokens > 0, "%q gives %+v", message, g)
			grantee := " " + g.owner
			require.True(t, strings.HasSuffix(message, grantee+" "+g.Key) || g.Key == "" && strings.HasSuffix(message, grantee),
				"%q gives %+v", message, g)
		}
		// any owner, and any key, can be granted
		*got, *strays = nil, nil
		in.deliver(s, fmt.Sprintf("%d 5 1 %d %s %s", fence, len(owner), owner, key))
		if fence <= 0 || owner == "" {
			require.Empty(t, *got)
			return
		}
		require.Equal(t, []Grant{{fence, 5, 1, key}}, *got)
	})
}
