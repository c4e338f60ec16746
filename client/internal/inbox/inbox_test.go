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
	gone     []string // unsubscribed
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

// seen returns the channels that were subscribed, and those that were given up, when nothing moves
// any more.
func (s *station) seen() (received, gone []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.received, s.gone
}

func (s *station) Do(_ context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cmd.Commands()[0] == "SUNSUBSCRIBE" {
		s.gone = append(s.gone, cmd.Commands()[1])
	}
	return rueidis.RedisResult{}
}

var errDenied = errors.New("denied")

// bubble runs a test with an inbox over a station, in virtual time.
func bubble(t *testing.T, slotted bool, test func(t *testing.T, in *Inbox, s *station)) {
	t.Helper()
	builder() // its goroutines are not of the bubble
	synctest.Test(t, func(t *testing.T) {
		s := &station{}
		s.in = New(Config{Redis: func(uint16) rueidis.Client { return s }, Slotted: slotted, Prefix: "lock:", ID: "id", Changed: func(uint16) {}, Refused: func(error) {},
			Denied: func(err error) bool { return errors.Is(err, errDenied) }})
		test(t, s.in, s)
		s.in.Close(context.Background())
		_, err := s.in.Enter(1, "late")
		require.ErrorIs(t, err, ErrClosed)
		_, gone := s.seen()
		require.Empty(t, gone, "SUNSUBSCRIBE is never sent")
	})
}

func ready(t *testing.T, w *Waiter, patience time.Duration) State {
	t.Helper()
	state, err := w.Ready(context.Background(), patience)
	require.NoError(t, err)
	return state
}

func TestAWaiterIsReadyWhenItsChannelIs(t *testing.T) {
	bubble(t, false, func(t *testing.T, in *Inbox, s *station) {
		require.False(t, in.Listening(0))
		w := enter(t, in, "a")
		state := ready(t, w, time.Minute)
		require.Equal(t, "lock:inbox:id", state.Channel)
		require.False(t, state.Stale())
		require.True(t, in.Listening(0))
		w.Leave()
		time.Sleep(time.Hour)
		require.True(t, in.Listening(0), "the only channel is kept")
		received, _ := s.seen()
		require.Len(t, received, 1)
	})
}

// Where no subscription is permitted a waiter polls; it is tried again every half minute.
func TestARefusedSubscription(t *testing.T) {
	bubble(t, false, func(t *testing.T, in *Inbox, s *station) {
		s.refusals = []error{errDenied, errDenied}
		began := time.Now()
		state := ready(t, enter(t, in, "a"), time.Minute)
		require.Empty(t, state.Channel)
		require.Less(t, time.Since(began), time.Second, "at once")
		<-state.Changed
		require.Empty(t, ready(t, enter(t, in, "b"), time.Minute).Channel)
		time.Sleep(2 * refusedPause)
		require.NotEmpty(t, ready(t, enter(t, in, "c"), 0).Channel, "the ACL was mended")
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
		w := enter(t, in, "a")
		require.Empty(t, ready(t, w, time.Second).Channel)
		require.Equal(t, time.Second, time.Since(began))
		require.NotEmpty(t, ready(t, w, time.Minute).Channel)
		require.Less(t, time.Since(began), 12*time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		in.set(in.subs[0], false, false)
		_, err := w.Ready(ctx, time.Minute)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A channel without a subscriber at the primary is subscribed anew, once for all who find out.
func TestUnheardSubscribesAnew(t *testing.T) {
	bubble(t, false, func(t *testing.T, in *Inbox, s *station) {
		w, other := enter(t, in, "a"), enter(t, in, "b")
		old := ready(t, w, time.Minute)
		w.Unheard(old)
		other.Unheard(old)
		require.False(t, in.Listening(0))
		time.Sleep(time.Second)
		received, _ := s.seen()
		require.Len(t, received, 2)
		require.True(t, old.Stale(), "all waiters ask again")
		w.Unheard(old)
		time.Sleep(time.Second)
		received, _ = s.seen()
		require.Len(t, received, 2, "that was said of the former one")
		require.NotEmpty(t, ready(t, w, 0).Channel)
	})
}

// In Cluster a slot that nobody needs is given up after a while, whether waiters or holders used
// it.
func TestASlotThatRestsIsGivenUp(t *testing.T) {
	bubble(t, true, func(t *testing.T, in *Inbox, s *station) {
		require.Empty(t, in.Keep(7), "there is no subscription yet")
		synctest.Wait()
		channel := in.Keep(7)
		require.NotEmpty(t, channel)
		w, err := in.Enter(8, "a")
		require.NoError(t, err)
		other := ready(t, w, time.Minute).Channel
		require.NotEqual(t, channel, other)
		time.Sleep(time.Hour)
		require.True(t, in.Listening(7))
		w.Leave()
		in.Drop(7)
		time.Sleep(idleSlot - time.Second)
		require.Equal(t, channel, in.Keep(7), "it is used again")
		time.Sleep(2 * time.Second)
		require.False(t, in.Listening(8))
		require.True(t, in.Listening(7))
		in.Drop(7)
		time.Sleep(idleSlot + time.Second)
		require.False(t, in.Listening(7))
	})
}

// Holders make a client listen on a bounded number of slots; a slot that only began for a holder
// that is gone rests too.
func TestHoldersListenOnABoundedNumberOfSlots(t *testing.T) {
	bubble(t, true, func(t *testing.T, in *Inbox, s *station) {
		for slot := range uint16(2 * maxKept) {
			in.Keep(slot)
		}
		synctest.Wait()
		require.Equal(t, maxKept, len(in.subs))
		w, err := in.Enter(3*maxKept, "a")
		require.NoError(t, err, "waiters on as many as they need")
		require.NotEmpty(t, ready(t, w, time.Minute).Channel)
		w.Leave()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Zero(t, len(in.subs), "nobody uses them")
	})
}
