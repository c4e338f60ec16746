package inbox

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

type heard struct {
	owner  string
	fence  int64
	reason string
}

// listening is an inbox with a subscription that nobody feeds but the test.
func listening() (in *Inbox, s *subscription, broken *[]heard) {
	broken = &[]heard{}
	in = New(Config{Prefix: "lock:", ID: "id", Changed: func(uint16) {}, Broken: func(owner string, fence int64, reason string) {
		*broken = append(*broken, heard{owner, fence, reason})
	}, Unclaimed: func(owner string, g Grant) { *broken = append(*broken, heard{owner, g.Fence, "unclaimed"}) }})
	s = &subscription{channel: in.channel(0), waiters: map[string][]*Waiter{}, echoes: map[string]chan struct{}{},
		changed: make(chan struct{}), ready: true, restart: func() {}}
	in.subs[0] = s
	return in, s, broken
}

func enter(t testing.TB, in *Inbox, owner string) *Waiter {
	t.Helper()
	w, err := in.Enter(0, owner)
	require.NoError(t, err)
	return w
}

func TestAGrantReachesItsOwner(t *testing.T) {
	in, s, broken := listening()
	a, b := enter(t, in, "a"), enter(t, in, "with a space")
	in.deliver(s, "77 1700000000000 5 with a space")
	require.Empty(t, a.Grants)
	require.Equal(t, Grant{77, 1700000000000, 5}, <-b.Grants)
	in.deliver(s, "78 1700000000000 1 nobody")
	in.deliver(s, "79 1 1 a")
	in.deliver(s, "81 2 1 a")
	require.Equal(t, int64(81), (<-a.Grants).Fence, "the latest counts, and to deliver never blocks")
	b.Leave()
	in.deliver(s, "82 1 1 with a space")
	require.Empty(t, b.Grants)
	require.Equal(t, []heard{{"nobody", 78, "unclaimed"}, {"with a space", 82, "unclaimed"}}, *broken)
}

// Two waits of one process with one owner string are two acquisitions: both hear, and ask.
func TestWaitersOfOneOwnerHearTheSame(t *testing.T) {
	in, s, _ := listening()
	first, second := enter(t, in, "job"), enter(t, in, "job")
	in.deliver(s, "77 1 1 job")
	require.Len(t, first.Grants, 1)
	require.Len(t, second.Grants, 1)
	first.Leave()
	<-second.Grants
	in.deliver(s, "78 1 1 job")
	require.Len(t, second.Grants, 1, "the one that left took only its own place")
	second.Leave()
	require.Empty(t, s.waiters)
}

func TestABreakIsToldWithOwnerAndReason(t *testing.T) {
	in, s, broken := listening()
	in.deliver(s, "broken 77 12 with a space deploy stuck, again")
	in.deliver(s, "broken 78 1 a ")
	require.Equal(t, []heard{{"with a space", 77, "deploy stuck, again"}, {"a", 78, ""}}, *broken)
}

var nonsense = []string{
	"", " ", "broken", "broken 1", "broken 1 2", "broken x 1 a b", "broken 1 x a b", "broken 1 5 a b", "broken 1 -1 a b", "broken 1 1 ab",
	"broken 1 9223372036854775807 a b", "echo", "echo 1", "77", "77 1", "77 1 1", "x 1 1 a", "77 x 1 a", "77 1 x a", "0 1 1 a", "-1 1 1 a",
	"77 1 0 a", "77 1 -5 a", "99999999999999999999 1 1 a", "nan 1 1 a", "0x10 1 1 a",
}

func TestNonsenseIsIgnored(t *testing.T) {
	in, s, broken := listening()
	a := enter(t, in, "a")
	for _, message := range nonsense {
		in.deliver(s, message)
		require.Empty(t, a.Grants, "%q", message)
		require.Empty(t, *broken, "%q", message)
	}
}

// FuzzMessages delivers what anybody with SPUBLISH on the channel can send.
func FuzzMessages(f *testing.F) {
	for _, message := range nonsense {
		f.Add(message, "a", int64(1))
	}
	f.Add("77 1700000000000 5 with a space", "with a space", int64(77))
	f.Add("broken 77 12 with a space deploy stuck", "with a space", int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, message, owner string, fence int64) {
		in, s, broken := listening()
		in.Unclaimed = func(owner string, g Grant) {
			if g.Fence <= 0 || g.Block <= 0 || !strings.HasSuffix(message, " "+owner) {
				t.Errorf("%q gives %+v to %q, who is not here", message, g, owner)
			}
		}
		w := enter(t, in, owner)
		in.deliver(s, message)
		if len(w.Grants) > 0 {
			if g := <-w.Grants; g.Fence <= 0 || g.Block <= 0 || !strings.HasSuffix(message, " "+owner) {
				t.Errorf("%q gives %+v to %q", message, g, owner)
			}
		}
		for _, b := range *broken {
			if !strings.Contains(message, " "+b.owner+" "+b.reason) {
				t.Errorf("%q breaks %+v", message, b)
			}
		}
		*broken = nil
		reason := message // every text can be a reason, and every owner be told it
		in.deliver(s, fmt.Sprintf("broken %d %d %s %s", fence, len(owner), owner, reason))
		if want := (heard{owner, fence, reason}); len(*broken) != 1 || (*broken)[0] != want {
			t.Errorf("%+v, not %+v", *broken, want)
		}
		in.deliver(s, fmt.Sprintf("%d 5 1 %s", fence, owner))
		if (len(w.Grants) > 0) != (fence > 0) {
			t.Errorf("token %d: %d grants for %q", fence, len(w.Grants), owner)
		}
	})
}
