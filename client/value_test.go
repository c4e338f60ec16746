// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
)

const (
	valued     = "valued" // a process that asks for values
	valueLease = 3 * time.Second
	valueGood  = 5 * time.Second
	story      = "story" // the stream of what happened, in the order and by the clock of the server
)

// values calls the function of an Example again and again, from two goroutines. It says 'run ID' when it makes a
// value, which it ends when it hears the ID, and 'got ID AGE' of each value: how long before the call it was begun. On a
// machine that stands still for a lease a lock is lost: then the story says so.
func values(p *reexec.Parent) error {
	var job struct{ Addr, Example string }
	if err := p.Job(&job); err != nil {
		return err
	}
	var c *client.Client
	var id atomic.Value // of the value that is made
	id.Store("")
	ended := func(t client.Tenure) {
		if errors.Is(t.Err, client.ErrLost) {
			_ = note(context.Background(), c, "lost", id.Load().(string))
		}
	}
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{job.Addr}},
		client.Config{Lease: valueLease, Observer: &client.Observer{Lost: ended, Released: ended}})
	if err != nil {
		return err
	}
	goOn := make(chan string)
	var made atomic.Int64
	fn := func(ctx context.Context) (string, error) {
		if client.Fence(ctx) == 0 {
			return "", client.ErrUnreachable // the Example goes on without Redis, which is not to be seen here
		}
		mine, began := fmt.Sprintf("%d.%d", os.Getpid(), made.Add(1)), time.Now()
		id.Store(mine)
		if err := note(ctx, c, "run", mine); err != nil {
			return "", err
		}
		p.Say("run", mine)
		for {
			select {
			case said := <-goOn:
				if said == mine {
					return fmt.Sprint(mine, " ", began.UnixMilli()), note(ctx, c, "made", mine)
				}
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
	}
	t := tokens{client: c, fetch: func(ctx context.Context) ([]byte, error) {
		value, err := fn(ctx)
		return fmt.Appendf(nil, `{"access_token": %q, "expires_in": %d}`, value, (time.Minute+valueGood)/time.Second), err
	}}
	pages := pages{client: c, good: valueGood, render: func(ctx context.Context, _ int) ([]byte, error) {
		value, err := fn(ctx)
		return []byte(value), err
	}}
	get := map[string]func() (string, error){
		"token": func() (string, error) { return t.get(context.Background()) },
		"page": func() (string, error) {
			page, err := pages.get(context.Background(), 7)
			return string(page), err
		},
	}[job.Example]
	p.Say("open")
	for range 2 {
		go func() {
			for ; ; time.Sleep(20 * time.Millisecond) { // what a caller does meanwhile
				asked := time.Now().UnixMilli()
				value, err := get()
				switch id, began, _ := strings.Cut(value, " "); {
				case err == nil:
					at, _ := strconv.ParseInt(began, 10, 64)
					p.Say("got", id, asked-at)
				case !errors.Is(err, client.ErrLost) && !errors.Is(err, client.ErrUnreachable):
					p.Say("failed", err)
				}
			}
		}()
	}
	for {
		said, err := p.Hear()
		if err != nil {
			return nil
		}
		goOn <- said
	}
}

// note adds to the story.
func note(ctx context.Context, c *client.Client, what, id string) error {
	return c.Redis().Do(ctx, c.Redis().B().Xadd().Key(story).Id("*").FieldValue().FieldValue("what", what).FieldValue("id", id).Build()).Error()
}

// Processes ask for values as the Examples do, and those that make one are killed in the middle of it. No two make one
// beside each other, the next one begins when the lease of the dead one is over, all that live get each value, and
// nobody gets one whose interval had ended before the call.
func TestTheMakersOfValuesAreKilled(t *testing.T) {
	for _, example := range []string{"token", "page"} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			d := server.Single(t, server.Owned())
			d.Load(t)
			c, err := client.Open(d.ClientOption(), client.Config{})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			defer judge(t, c)
			f := fleet{t: t, job: map[string]string{"Addr": d.Addrs()[0], "Example": example},
				lines: make(chan said), alive: map[*reexec.Child]bool{}}
			for range 4 {
				f.spawn()
			}
			for _, kills := range []int{2, 1, 0} {
				for range kills {
					run := f.hear("run")
					require.NoError(t, note(t.Context(), c, "killed", run.words[1]))
					run.from.Kill()
					delete(f.alive, run.from)
					f.spawn()
				}
				f.allGet()
			}
			for child := range f.alive {
				child.Kill()
			}
		})
	}
}

// fleet are the processes that ask for values.
type fleet struct {
	t     *testing.T
	job   map[string]string
	lines chan said
	alive map[*reexec.Child]bool
}

type said struct {
	from  *reexec.Child
	words []string
}

func (f *fleet) spawn() {
	child := reexec.Spawn(f.t, valued, f.job)
	child.Hear("open")
	f.alive[child] = true
	go func() {
		for {
			text, err := child.Process.Hear()
			if err != nil {
				return
			}
			select {
			case f.lines <- said{child, strings.Fields(text)}:
			case <-f.t.Context().Done():
				return
			}
		}
	}()
}

// allGet lets the next value be made, and blocks until each process has got it. On a slow machine that may take one more.
func (f *fleet) allGet() {
	f.t.Helper()
	var id string
	for got, runs := map[*reexec.Child]bool{}, 0; len(got) < len(f.alive); {
		switch l := f.hear("run", "got"); {
		case l.words[0] == "run":
			id, got = l.words[1], map[*reexec.Child]bool{}
			runs++
			require.LessOrEqual(f.t, runs, 5, "values that not all got")
			l.from.Say(id)
		case l.words[1] == id:
			got[l.from] = true
		}
	}
}

// hear blocks until a process that lives says one of the words.
func (f *fleet) hear(words ...string) said {
	f.t.Helper()
	for {
		select {
		case l := <-f.lines:
			if !f.alive[l.from] {
				continue
			}
			require.NotEqual(f.t, "failed", l.words[0], l.words)
			if l.words[0] == "got" {
				age, err := strconv.ParseInt(l.words[2], 10, 64)
				require.NoError(f.t, err)
				// The server keeps a value for longer by as long as it was under way, and refuses it after the lease.
				require.LessOrEqual(f.t, age, (valueGood + valueLease).Milliseconds(), "a value whose interval had ended")
			}
			if slices.Contains(words, l.words[0]) {
				return l
			}
		case <-time.After(time.Minute):
			require.Fail(f.t, "nobody says it", words)
		}
	}
}

// judge reads the story.
func judge(t *testing.T, c *client.Client) {
	t.Helper()
	entries, err := c.Redis().Do(t.Context(), c.Redis().B().Xrange().Key(story).Start("-").End("+").Build()).AsXRange()
	require.NoError(t, err)
	lost := map[string]bool{}
	for _, e := range entries {
		if e.FieldValues["what"] == "lost" {
			lost[e.FieldValues["id"]] = true
			t.Logf("this machine stood still for a lease: %s lost its lock", e.FieldValues["id"])
		}
	}
	var what, id string // of the last maker that did not lose its lock
	var was int64
	values := 0
	for _, e := range entries {
		text, _, _ := strings.Cut(e.ID, "-")
		now, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		last, whose, since := what, id, time.Duration(now-was)*time.Millisecond
		if what, id = e.FieldValues["what"], e.FieldValues["id"]; lost[id] {
			what, id = last, whose
			continue
		}
		was = now
		switch {
		case what != "run":
			require.Equal(t, []string{"run", id}, []string{last, whose}, what)
			if what == "made" {
				values++
			}
		case last == "run":
			require.Fail(t, "two make a value at once", "%s and %s", whose, id)
		case last == "made":
			require.Greater(t, since, 1990*time.Millisecond, "a value is kept for two seconds at least")
		case last == "killed":
			t.Logf("the next one makes a value %v after the one before was killed, with a lease of %v", since, valueLease)
			require.Less(t, since, valueLease+5*time.Second) // of which a busy machine may need the 5
		}
	}
	require.True(t, values >= 3 || t.Failed(), values)
}

// A token whose answer says no expires_in, so 0, is good for two seconds at least, and not for every.
func TestAValueThatIsGoodForNoTime(t *testing.T) {
	c, other := opened(t), opened(t)
	_, err := c.OnceValue(t.Context(), t.Name(), time.Hour, func(ctx context.Context) ([]byte, error) {
		client.KeepFor(ctx, 0)
		return []byte("v"), nil
	})
	require.NoError(t, err)
	info, err := other.Inspect(t.Context(), t.Name())
	require.NoError(t, err)
	require.LessOrEqual(t, info.Remaining, 2*time.Second, "%+v", info)
}

// Whose function said that its value is good for long asks again after every, as the others do: it can be
// broken.
func TestWhoMadeAValueAsksAgain(t *testing.T) {
	c, other, made := opened(t), opened(t), 0
	get := func() string {
		value, err := c.OnceValue(t.Context(), t.Name(), time.Second, func(ctx context.Context) ([]byte, error) {
			client.KeepFor(ctx, time.Hour)
			made++
			return fmt.Append(nil, made), nil
		})
		require.NoError(t, err)
		return string(value)
	}
	require.Equal(t, "1", get())
	info, err := other.Inspect(t.Context(), t.Name())
	require.NoError(t, err)
	require.Greater(t, info.Remaining, 59*time.Minute, "%+v", info)
	_, err = other.Break(t.Context(), t.Name(), "revoked")
	require.NoError(t, err)
	eventually(t, "another one", func() bool { return get() == "2" })
	_, err = other.Break(t.Context(), t.Name(), "the end")
	require.NoError(t, err)
}

// A function that goes on without its lock keeps no other call of its process from a value, nor does what it
// returns count then.
func TestAFunctionGoesOnWithoutItsLock(t *testing.T) {
	c, began, end, late := opened(t), make(chan struct{}), make(chan struct{}), make(chan error)
	get := func(fn func() string) (string, error) {
		value, err := c.OnceValue(t.Context(), t.Name(), time.Hour, func(context.Context) ([]byte, error) { return []byte(fn()), nil },
			client.WithMaxWait(time.Minute))
		return string(value), err
	}
	go func() {
		_, err := get(func() string {
			close(began)
			<-end
			return "late"
		})
		late <- err
	}()
	<-began
	_, err := c.Break(t.Context(), t.Name(), "it hangs")
	require.NoError(t, err)
	value, err := get(func() string { return "another" })
	require.NoError(t, err)
	require.Equal(t, "another", value)
	close(end)
	require.ErrorIs(t, <-late, client.ErrBroken)
	value, err = get(nil)
	require.NoError(t, err)
	require.Equal(t, "another", value)
	_, err = c.Break(t.Context(), t.Name(), "the end")
	require.NoError(t, err)
}

// Who waits for another goroutine first, and asks then, has waited from its beginning on. What the Observer was
// told of the second wait stays as it was told.
func TestHowLongAValueWasWaitedFor(t *testing.T) {
	told := make(chan error, 2)
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{address}}, client.Config{
		Observer: &client.Observer{Refused: func(_ context.Context, r client.Refusal) { told <- r.Err }}})
	require.NoError(t, err)
	defer c.Close()
	other, began, end := opened(t), make(chan struct{}), make(chan struct{})
	ends := func(ctx context.Context, c *client.Client, fn func(context.Context) ([]byte, error), opts ...client.Option) <-chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := c.OnceValue(ctx, t.Name(), time.Second, fn, opts...)
			ended <- err
		}()
		return ended
	}
	made := ends(t.Context(), other, func(context.Context) ([]byte, error) {
		close(began)
		<-end
		return nil, nil
	})
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	asks := ends(ctx, c, nil)
	eventually(t, "it is in line", func() bool {
		info, err := other.Inspect(t.Context(), t.Name())
		return err == nil && info.Waiters == 1
	})
	waits := ends(t.Context(), c, nil, client.WithMaxWait(time.Second))
	time.Sleep(500 * time.Millisecond)
	cancel()
	require.ErrorIs(t, <-asks, context.Canceled)
	err = <-waits
	var stopped, second *client.WaitError
	require.ErrorAs(t, err, &stopped)
	<-told
	require.ErrorAs(t, <-told, &second)
	require.Less(t, second.Waited, stopped.Waited)
	require.ErrorIs(t, err, client.ErrTimeout)
	require.GreaterOrEqual(t, stopped.Waited, time.Second)
	close(end)
	require.NoError(t, <-made)
	_, err = other.Break(t.Context(), t.Name(), "the end")
	require.NoError(t, err)
}

// Who asks afresh takes the value from nobody, neither meanwhile nor when it gets none.
func TestWhoAsksAfreshTakesNoValueAway(t *testing.T) {
	c, name, own := opened(t), t.Name(), errors.New("own")
	get := func(fn func(context.Context) ([]byte, error), opts ...client.Option) (string, error) {
		value, err := c.OnceValue(t.Context(), name, time.Hour, fn, opts...)
		return string(value), err
	}
	known := func(when string) {
		t.Helper()
		value, err := get(func(context.Context) ([]byte, error) { return nil, own })
		require.NoError(t, err, when)
		require.Equal(t, "one", value, when)
	}
	_, err := get(func(context.Context) ([]byte, error) { return []byte("one"), nil })
	require.NoError(t, err)
	_, err = c.Break(t.Context(), name, "another one is needed")
	require.NoError(t, err)
	_, err = get(func(context.Context) ([]byte, error) {
		known("meanwhile")
		return nil, own
	}, client.WithFreshAnswer())
	require.ErrorIs(t, err, own)
	known("after that")
	value, err := get(func(context.Context) ([]byte, error) { return []byte("two"), nil }, client.WithFreshAnswer())
	require.NoError(t, err)
	require.Equal(t, "two", value)
	value, err = get(nil)
	require.NoError(t, err)
	require.Equal(t, "two", value)
	_, err = c.Break(t.Context(), name, "the end")
	require.NoError(t, err)
}
