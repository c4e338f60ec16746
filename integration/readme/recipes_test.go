// SPDX-License-Identifier: Apache-2.0

package readme

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/integration/server"
)

// The code of docs/client.md that other tests run in a longer form: here it is compiled as it stands there.
func jobs(ctx context.Context, c *client.Client, report, work, transfer func(context.Context) error) error {
	// Called each hour by every process: one of them runs it, however short the work is, and whatever the clocks say.
	run, err := c.Once(ctx, "hourly report", 59*time.Minute, report)
	fmt.Println(run.Ran, run.By, run.End, err) // whether it ran here, who has the interval, how long at least

	// Campaign, work while leading, campaign again when the lead is lost. It blocks until work returns, or ErrInvalid.
	err = c.Lead(ctx, "scheduler", work, client.WithLabel("10.1.2.3:8080")) // where the leader can be reached
	if err != nil {
		return err
	}

	// Who leads, now and after each change. It blocks until ctx ends.
	for info, err := range c.Watch(ctx, "scheduler") {
		fmt.Println(info.Holder, err)
	}

	// All or none, in any order, without deadlock if no other lock is held; one context for all of them.
	return c.DoAll(ctx, []string{"account:1", "account:2"}, transfer)
}

func shared(ctx context.Context, c *client.Client, fetch func(context.Context) ([]byte, error)) ([]byte, error) {
	// Fetched at most once in 55 minutes on the whole fleet. Who asks meanwhile waits for it, who asks later gets it.
	token, err := c.OnceValue(ctx, "token:mail", 55*time.Minute, fetch)
	return token, err
}

func beside(ctx context.Context, c *client.Client, resize func(context.Context, int) error, read, write func(context.Context) error) error {
	// At most four workers on all hosts together; the slot, 1 to 4, is no other one's meanwhile.
	err := c.Do(ctx, "thumbnails", func(ctx context.Context) error {
		return resize(ctx, client.Slot(ctx))
	}, client.WithLimit(4))
	if err != nil {
		return err
	}

	// Readers read together; a writer, without the option, waits for them, and they for it.
	err = c.Do(ctx, "prices", read, client.WithShared())
	if err != nil {
		return err
	}
	return c.Do(ctx, "prices", write)
}

func byURL(ctx context.Context) (*client.Client, error) {
	// redis://, rediss:// (TLS) or unix://, with user, password and database; behind Sentinel
	// ?master_set=mymaster.
	option, err := rueidis.ParseURL("rediss://app:secret@redis.example:6379/0")
	if err != nil {
		return nil, err
	}
	return client.OpenContext(ctx, option, client.Config{}) // ctx is for connecting; Open is without
}

func several() (*client.Client, error) {
	c, err := quorum.Open([]rueidis.ClientOption{
		{InitAddress: []string{"a:6379"}}, {InitAddress: []string{"b:6379"}}, {InitAddress: []string{"c:6379"}},
	}, client.Config{})
	return c, err
}

var _, _, _, _, _ = jobs, shared, beside, byURL, several

// turn answers one message of a conversation. A second message that comes meanwhile waits in line.
func turn(ctx context.Context, c *client.Client, conversation string, answer func(context.Context, int64) error) error {
	return c.Do(ctx, client.Name("conversation", conversation), func(ctx context.Context) error {
		return answer(ctx, client.Fence(ctx)) // store the answer with this token
	}, client.WithMaxWait(30*time.Second), client.WithMaxHold(10*time.Minute, 30*time.Second))
}

// claim works on an issue, unless another agent has it. false: another one has it.
func claim(ctx context.Context, c *client.Client, issue, agent string, work func(context.Context) error) (bool, error) {
	ran := false
	err := c.TryDo(ctx, client.Name("issue", issue), func(ctx context.Context) error {
		ran = true
		return work(ctx)
	}, client.WithLabel(agent))
	var busy *client.BusyError
	if !ran && errors.As(err, &busy) { // not the work's own
		fmt.Println(issue, "is taken by", busy.Holder.Label)
		return false, nil
	}
	return ran, err
}

// evenWithout runs work under the lock, and without it while Redis cannot be reached.
func evenWithout(ctx context.Context, c *client.Client, name string, work func(context.Context) error) error {
	call, cancel := context.WithTimeout(ctx, 2*time.Second) // bounds the call, not the work
	defer cancel()
	ran := false
	err := c.Do(call, name, func(locked context.Context) error {
		ran = true
		return work(locked)
	}, client.WithLockContext(ctx))
	if !ran && errors.Is(err, client.ErrUnreachable) {
		return work(ctx) // without a lock: others may be inside too, and client.Fence(ctx) is 0
	}
	return err
}

// skip is what pg_try_advisory_lock was for: work that need not be done when another process does it.
func skip(ctx context.Context, c *client.Client, name string, work func(context.Context) error) error {
	ran := false
	err := c.TryDo(ctx, name, func(ctx context.Context) error {
		ran = true
		return work(ctx)
	})
	if !ran && errors.Is(err, client.ErrBusy) {
		return nil // another process does it
	}
	return err
}

// The recipes of the pages do what the pages say.
func TestTheRecipesRun(t *testing.T) {
	d := server.Single(t, server.Owned())
	d.Load(t)
	c, err := client.Open(d.ClientOption(), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	ctx := t.Context()

	var tokens []int64
	for range 2 {
		require.NoError(t, turn(ctx, c, "7", func(_ context.Context, token int64) error {
			tokens = append(tokens, token)
			return nil
		}))
	}
	require.Less(t, tokens[0], tokens[1])

	did, err := claim(ctx, c, "42", "agent 1", func(context.Context) error {
		did, err := claim(t.Context(), c, "42", "agent 2", func(context.Context) error { return errors.New("both work") })
		require.NoError(t, err)
		require.False(t, did)
		return nil
	})
	require.NoError(t, err)
	require.True(t, did)

	require.NoError(t, c.Do(ctx, "index", func(context.Context) error {
		return skip(t.Context(), c, "index", func(context.Context) error { return errors.New("both index") })
	}))

	inside := false
	see := func(ctx context.Context) error {
		inside = client.Fence(ctx) > 0
		return ctx.Err()
	}
	require.NoError(t, evenWithout(ctx, c, "mail", see))
	require.True(t, inside)
	require.NoError(t, evenWithout(ctx, c, "mail", func(context.Context) error { return d.Nodes()[0].Kill() }))
	require.NoError(t, evenWithout(ctx, c, "mail", see))
	require.False(t, inside, "the server is gone")
	require.ErrorIs(t, c.Do(ctx, "mail", see, client.WithMaxWait(time.Second)), client.ErrUnreachable)
}
