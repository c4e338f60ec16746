// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/cluster"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// builder is what rueidis hands out with a client only: one of a server that says OK to all.
var builder = sync.OnceValue(func() rueidis.Builder {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"pipe"}, ForceSingleClient: true, AlwaysRESP2: true, DisableCache: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				lines := bufio.NewScanner(theirs)
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), "*") {
						_, _ = theirs.Write([]byte("+OK\r\n"))
					}
				}
			}()
			return ours, nil
		}})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	return c.B()
})

// station stands for rueidis and the server: the test says what becomes of a subscription.
type station struct {
	rueidis.Client
	in       *Inbox
	refusals []error // of the first ones; then each is confirmed, and lasts until its context ends

	mu       sync.Mutex
	received []string // channels, in the order of their Receives
	notices  int      // that no subscription is permitted
}

func (s *station) B() rueidis.Builder { return builder() }

func (s *station) Receive(ctx context.Context, cmd rueidis.Completed, _ func(rueidis.PubSubMessage)) error {
	channel := cmd.Commands()[1]
	s.mu.Lock()
	s.received = append(s.received, channel)
	err := error(nil)
	if len(s.refusals) > 0 {
		err, s.refusals = s.refusals[0], s.refusals[1:]
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	s.in.mu.Lock()
	var sub *subscription
	for _, candidate := range s.in.subs {
		if candidate.channel == channel {
			sub = candidate
		}
	}
	s.in.mu.Unlock()
	s.in.set(sub, true, false)
	<-ctx.Done()
	return ctx.Err()
}

// seen returns the channels that were subscribed, when nothing moves any more. The station has no Do:
// to unsubscribe is fatal.
func (s *station) seen() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received
}

var errDenied = fcall.ErrDenied

// bubble runs a test with an inbox over a station, in virtual time.
func bubble(t *testing.T, slotted bool, test func(t *testing.T, in *Inbox, s *station)) {
	t.Helper()
	builder() // its goroutines are not of the bubble
	synctest.Test(t, func(t *testing.T) {
		s := &station{}
		s.in = New(Config{Redis: s, Slotted: slotted, Prefix: "lock:", ID: "id",
			Unclaimed: func(string, Grant) {}, Refused: func(error) { s.notices++ }})
		test(t, s.in, s)
		s.in.Close(context.Background())
		began := time.Now()
		require.Empty(t, ready(s.in.Claim(1, "late", deaf), time.Minute).Channel)
		require.Equal(t, began, time.Now(), "after Close nothing is waited for")
	})
}

func deaf(Grant) {}

func ready(c *Claim, patience time.Duration) *State { return c.Ready(context.Background(), patience) }

func TestAClaimIsReadyWhenItsChannelIs(t *testing.T) {
	bubble(t, false, func(t *testing.T, in *Inbox, s *station) {
		require.Empty(t, in.Channel(0))
		c := in.Claim(0, "a", deaf)
		state := ready(c, time.Minute)
		require.Equal(t, "lock:inbox:id", state.Channel)
		require.False(t, state.Stale())
		require.Equal(t, state.Channel, in.Channel(0))
		c.Drop()
		time.Sleep(time.Hour)
		require.NotEmpty(t, in.Channel(0), "the only channel is kept")
		require.Len(t, s.seen(), 1)
	})
}

// Grants were lost before a subscription: all claims look after each one.
func TestEveryClaimLooksAfterASubscription(t *testing.T) {
	bubble(t, false, func(t *testing.T, in *Inbox, s *station) {
		var looks []string
		for _, owner := range []string{"a", "b"} {
			in.Claim(0, owner, func(m Grant) {
				require.True(t, m.Look())
				looks = append(looks, owner)
			})
		}
		s.seen()
		require.Empty(t, looks, "nobody has waited by it yet")
		in.set(in.subs[0], false, false)
		s.seen()
		require.Empty(t, looks, "it is gone")
		in.set(in.subs[0], true, false)
		s.seen()
		require.ElementsMatch(t, []string{"a", "b"}, looks)
	})
}

// Where no subscription is permitted a waiter polls; it is tried again every half minute.
func TestARefusedSubscription(t *testing.T) {
	bubble(t, false, func(t *testing.T, in *Inbox, s *station) {
		s.refusals = []error{errDenied, errDenied}
		began := time.Now()
		state := ready(in.Claim(0, "a", deaf), time.Minute)
		require.Empty(t, state.Channel)
		require.Equal(t, began, time.Now(), "at once")
		time.Sleep(refusedPause + 1)
		require.True(t, state.Stale())
		require.Empty(t, ready(in.Claim(0, "b", deaf), time.Minute).Channel)
		time.Sleep(refusedPause)
		require.NotEmpty(t, ready(in.Claim(0, "c", deaf), 0).Channel, "the ACL was mended")
		require.Equal(t, 2, s.notices)
	})
}

// What fails otherwise is tried again with growing pauses, and a waiter polls when its patience is
// over.
func TestASubscriptionThatFails(t *testing.T) {
	bubble(t, false, func(t *testing.T, in *Inbox, s *station) {
		for range 12 {
			s.refusals = append(s.refusals, errors.New("LOADING"))
		}
		began := time.Now()
		c := in.Claim(0, "a", deaf)
		require.Empty(t, ready(c, time.Second).Channel)
		require.Equal(t, time.Second, time.Since(began))
		require.NotEmpty(t, ready(c, time.Minute).Channel)
		require.Less(t, time.Since(began), 12*time.Second)
		in.set(in.subs[0], false, false)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began = time.Now()
		require.Empty(t, c.Ready(ctx, time.Minute).Channel)
		require.Equal(t, time.Second, time.Since(began), "its context is over")
		require.Zero(t, s.notices)
	})
}

// A channel without a subscriber at the primary is subscribed anew, once for all who find out.
func TestUnheardSubscribesAnew(t *testing.T) {
	bubble(t, false, func(t *testing.T, in *Inbox, s *station) {
		c, other := in.Claim(0, "a", deaf), in.Claim(0, "b", deaf)
		old := ready(c, time.Minute)
		c.Unheard(old)
		other.Unheard(old)
		require.Empty(t, in.Channel(0))
		time.Sleep(time.Second)
		require.Len(t, s.seen(), 2)
		require.True(t, old.Stale(), "all waiters ask again")
		c.Unheard(old)
		time.Sleep(time.Second)
		require.Len(t, s.seen(), 2, "that was said of the former one")
		require.NotEmpty(t, ready(c, 0).Channel)
	})
}

// In Cluster each slot has its channel, and one that nobody claims is given up after a while.
func TestASlotThatRestsIsGivenUp(t *testing.T) {
	bubble(t, true, func(t *testing.T, in *Inbox, s *station) {
		seven, eight := in.Claim(7, "a", deaf), in.Claim(8, "a", deaf)
		channel := ready(seven, time.Minute).Channel
		require.Equal(t, uint16(7), cluster.Slot(channel))
		require.NotEqual(t, channel, ready(eight, time.Minute).Channel)
		time.Sleep(time.Hour)
		require.Equal(t, channel, in.Channel(7))
		seven.Drop()
		eight.Drop()
		time.Sleep(idleSlot - time.Second)
		again := in.Claim(7, "b", deaf)
		time.Sleep(2 * time.Second)
		s.seen()
		require.Empty(t, in.Channel(8))
		require.Equal(t, channel, in.Channel(7), "it is used again")
		again.Drop()
		time.Sleep(idleSlot + 1)
		s.seen()
		require.Empty(t, in.Channel(7))
		require.Empty(t, in.subs)
	})
}
