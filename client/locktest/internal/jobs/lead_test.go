// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest"
)

// campaign runs Lead in the background.
type campaign struct {
	terms  chan context.Context // each term's
	does   chan error           // what fn returns
	result chan error
}

func leads(ctx context.Context, c *client.Client, opts ...client.Option) *campaign {
	k := &campaign{make(chan context.Context), make(chan error), make(chan error, 1)}
	go func() {
		k.result <- c.Lead(ctx, "leader", func(ctx context.Context) error {
			k.terms <- ctx
			select {
			case err := <-k.does:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}, opts...)
	}()
	return k
}

func TestLead(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		a, b := s.Client(client.Config{}), s.Client(client.Config{})
		first := leads(ctx, a, client.WithLabel("10.0.0.1:80"))
		term := <-first.terms
		second := leads(ctx, b, client.WithLabel("10.0.0.2:80"))
		queued(s, "leader", 1)
		info, err := b.Inspect(ctx, "leader")
		require.NoError(t, err)
		require.Equal(t, "10.0.0.1:80", info.Holder.Label)

		// The lead is given up: the other one has it, and this one waits for it again.
		first.does <- client.ErrResign
		next := <-second.terms
		require.ErrorIs(t, context.Cause(term), client.ErrReleased)
		require.Greater(t, client.Fence(next), client.Fence(term))
		queued(s, "leader", 1)

		// It is lost: whatever fn returns, the campaign goes on.
		s.Take("leader", 10*time.Second)
		<-next.Done()
		queued(s, "leader", 2) // in whichever order
		select {
		case term = <-first.terms:
		case term = <-second.terms:
			first, second = second, first
		}
		require.Greater(t, client.Fence(term), client.Fence(next))
		queued(s, "leader", 1)

		// fn ends it.
		wrong := errors.New("out of luck")
		first.does <- wrong
		require.Equal(t, wrong, <-first.result)
		next = <-second.terms
		second.does <- nil
		require.NoError(t, <-second.result)
		require.ErrorIs(t, context.Cause(next), client.ErrReleased)
		s.Free("leader")
	})
}

func TestLeadRidesOutAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{Lease: 3 * time.Second})
		k := leads(ctx, c)
		term := <-k.terms
		s.Stop()
		<-term.Done()
		require.ErrorIs(t, context.Cause(term), client.ErrExpired)
		time.Sleep(time.Hour)
		s.Start()
		began := time.Now()
		term = <-k.terms
		require.Less(t, time.Since(began), 16*time.Second, "the longest pause, and a dial")
		c.Close()
		<-term.Done()
		require.ErrorIs(t, <-k.result, client.ErrClosed)
	})
}

func TestLeadEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c := s.Client(client.Config{})
		require.ErrorIs(t, c.Lead(ctx, "", nothing), client.ErrArgument)

		leading, cancel := context.WithCancel(ctx)
		k := leads(leading, c)
		term := <-k.terms
		cancel()
		<-term.Done()
		require.ErrorIs(t, <-k.result, context.Canceled)
		s.Free("leader")

		give := s.Take("leader", time.Hour)
		waiting, cancel := context.WithCancel(ctx)
		k = leads(waiting, c)
		queued(s, "leader", 1)
		cancel()
		require.ErrorIs(t, <-k.result, context.Canceled)
		queued(s, "leader", 0)
		give()
		s.Free("leader")

		paused, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		s.Stop()
		k = leads(paused, c)
		require.ErrorIs(t, <-k.result, client.ErrUnreachable)
		require.Equal(t, context.DeadlineExceeded, paused.Err())
		s.Start()

		work, cancel := context.WithCancel(ctx)
		k = leads(ctx, c, client.WithLockContext(work))
		<-k.terms
		k.does <- client.ErrResign
		cancel()
		spend(t, 0, time.Second, func() { require.ErrorIs(t, <-k.result, context.Canceled) })
		late, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		give = s.Take("leader", time.Hour)
		s.Stop()
		time.AfterFunc(5*time.Second, s.Start) // long before its time is over
		k = leads(ctx, c, client.WithLockContext(late))
		spend(t, 50*time.Second, 61*time.Second, func() { require.ErrorIs(t, <-k.result, client.ErrTimeout) })
		queued(s, "leader", 0)
		give()
		freed(s, "leader")
	})
}

// What fn returned ends the campaign: also the loss of another lock, and the end of its own in a shutdown.
func TestLeadReturnsWhatFnReturned(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, own, terms := s.Client(client.Config{}), client.WithOwner("o"), 0
		err := c.Lead(ctx, "leader", func(work context.Context) error {
			terms++
			return c.Do(work, "job", func(work context.Context) error {
				s.Take("job", time.Hour)
				<-work.Done()
				return context.Cause(work)
			}, own)
		}, own)
		require.ErrorIs(t, err, client.ErrTaken)
		require.Equal(t, 1, terms)

		mine := errors.New("could not save")
		time.AfterFunc(time.Second, func() { _ = c.Shutdown(ctx) })
		require.ErrorIs(t, c.Lead(ctx, "leader", func(work context.Context) error {
			<-work.Done()
			return errors.Join(context.Cause(work), mine)
		}), mine)
	})
}

// A lead that was lost before fn returned is campaigned for again, also if only the release shows that.
func TestLeadThatWasLostUnnoticed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		for _, of := range []error{nil, errors.New("out of luck")} {
			terms := 0
			require.NoError(t, s.Client(client.Config{}).Lead(ctx, "leader", func(context.Context) error {
				if terms++; terms > 1 {
					return nil
				}
				s.Break("leader", "")
				return of
			}))
			require.Equal(t, 2, terms)
		}
	})
}

// MaxHold bounds a term: two take turns.
func TestLeadForATerm(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		var terms [2]atomic.Int32
		until, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		var campaigns sync.WaitGroup
		for i := range terms {
			c := s.Client(client.Config{})
			campaigns.Go(func() {
				err := c.Lead(until, "leader", func(ctx context.Context) error {
					terms[i].Add(1)
					<-ctx.Done()
					return nil
				}, client.WithMaxHold(time.Minute, time.Second))
				require.True(t, err == nil || errors.Is(err, client.ErrTimeout), err)
			})
		}
		campaigns.Wait()
		require.InDelta(t, 30, terms[0].Load(), 2)
		require.InDelta(t, 30, terms[1].Load(), 2)
	})
}

func TestWatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *locktest.Server) {
		c, other := s.Client(client.Config{}), s.Client(client.Config{Label: "it"})
		watching, cancel := context.WithCancel(ctx)
		seen, done := make(chan string, 1), make(chan struct{})
		go func() {
			defer close(done)
			for info, err := range c.Watch(watching, "leader") {
				switch {
				case err != nil:
					seen <- kind(err)
				case !info.Held:
					seen <- "nobody"
				default:
					seen <- fmt.Sprint(info.Holds, info.Holder.Label)
				}
			}
		}()
		soon := func(want string) {
			t.Helper()
			began := time.Now()
			require.Equal(t, want, <-seen)
			require.Less(t, time.Since(began), 100*time.Millisecond)
		}
		soon("nobody")
		l, err := other.Acquire(ctx, "leader")
		require.NoError(t, err)
		soon("1it")
		time.Sleep(time.Hour) // renewals are no change
		require.NoError(t, l.Release(ctx))
		soon("nobody")
		first := holding(t, other, "leader", client.WithShared())
		soon("1")
		second := holding(t, other, "leader", client.WithShared())
		soon("2")
		require.NoError(t, first.Release(ctx))
		soon("1")
		require.NoError(t, second.Release(ctx))
		soon("nobody")
		s.Stop()
		require.Equal(t, client.ErrUnreachable.Error(), <-seen)
		time.Sleep(time.Minute)
		s.Start()
		require.Equal(t, "nobody", <-seen)
		cancel()
		<-done

		for range c.Watch(ctx, "leader") { // the caller ends it
			break
		}
		c.Close()
		for of, name := range map[*client.Client]string{c: "leader", other: ""} {
			var told []string
			for _, err := range of.Watch(ctx, name) {
				told = append(told, kind(err))
			}
			require.Equal(t, []string{map[string]error{"leader": client.ErrClosed, "": client.ErrInvalid}[name].Error()}, told)
		}
	})
}

// suspended is a context of a process that stands still when Done is looked at for the first time: when a
// question's time has begun, and before it asks.
type suspended struct {
	context.Context
	once *sync.Once
}

func (c suspended) Done() <-chan struct{} {
	c.once.Do(func() { time.Sleep(3 * time.Second) })
	return c.Context.Done()
}

// No outage is yielded of one that is shorter than two seconds, nor because this process was suspended.
func TestWatchAsksAgainBeforeAnOutage(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]func(s *locktest.Server){
		"restarted": func(s *locktest.Server) {
			s.Stop()
			time.Sleep(1500 * time.Millisecond)
			s.Start()
		},
		"connected anew": func(s *locktest.Server) { s.Failover() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *locktest.Server) {
				watching, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				c, other, told := s.Client(client.Config{}), s.Client(client.Config{}), []string(nil)
				l := holding(t, other, "leader")
				time.AfterFunc(10*time.Second, func() { does(s) })
				time.AfterFunc(30*time.Second, func() { _ = l.Release(ctx) })
				for info, err := range c.Watch(suspended{watching, new(sync.Once)}, "leader") {
					told = append(told, fmt.Sprint(info.Held, kind(err)))
				}
				require.Equal(t, []string{"true" + kind(nil), "false" + kind(nil)}, told)
			})
		})
	}
}
