package failure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
	"github.com/holdfast-go/holdfast/integration/testbed"
)

// asker is a process that calls Once all the time.
const asker = "asker"

type askJob struct {
	Addrs    []string
	Quorum   bool
	Replicas int
	Every    time.Duration
	Guard    time.Duration
	Seed     uint64
}

// onceTurn is one beginning of the work: after Asked, by the machine's clock, the interval was granted, and
// at Began the work looked at its context, which had not ended.
type onceTurn struct{ asked, began int64 }

// ask calls Once until its input ends, and says each beginning.
func ask(p *reexec.Parent) error {
	var j askJob
	if err := p.Job(&j); err != nil {
		return err
	}
	c, err := openAsker(j)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.Hear()
	}()
	r := rand.New(rand.NewPCG(j.Seed, 0))
	now := func() int64 { return time.Now().UnixNano() }
	for {
		asked := now()
		_, err := c.Once(context.Background(), contested, j.Every, func(ctx context.Context) error {
			began := now()
			if ctx.Err() == nil {
				p.Say(asked, began)
			}
			if r.IntN(3) == 0 { // the shortest jobs are the ones that others lose track of
				time.Sleep(time.Duration(r.Int64N(int64(j.Every))))
			}
			return nil
		})
		if errors.Is(err, client.ErrInvalid) && !errors.Is(err, client.ErrLibrary) {
			return err
		}
		select {
		case <-done:
			return nil
		case <-time.After(time.Duration(r.IntN(40)) * time.Millisecond):
		}
	}
}

func openAsker(j askJob) (*client.Client, error) {
	cfg := client.Config{Replicas: j.Replicas, Guard: j.Guard, Prefix: prefix, Logger: slog.New(slog.DiscardHandler)}
	if !j.Quorum {
		return client.Open(rueidis.ClientOption{InitAddress: j.Addrs}, cfg)
	}
	cfg.AutoLoad = true
	cfg.Lease = j.Every
	var options []rueidis.ClientOption
	for _, addr := range j.Addrs {
		options = append(options, rueidis.ClientOption{InitAddress: []string{addr}})
	}
	return quorum.Open(options, cfg)
}

// askers are the processes of a fleet, and what they said.
type askers struct {
	*bed
	job   askJob
	turns chan onceTurn
	seen  []onceTurn
	list  []*reexec.Process
	heard sync.WaitGroup
}

func (a *askers) start() *reexec.Process {
	a.job.Seed++
	p, err := reexec.Start(asker, a.job)
	require.NoError(a.TB, err)
	a.heard.Go(func() {
		for line, err := p.Hear(); err == nil; line, err = p.Hear() {
			var turn onceTurn
			if _, err := fmt.Sscan(line, &turn.asked, &turn.began); err == nil { // not cut off by its death
				a.turns <- turn
			}
		}
	})
	return p
}

// more blocks until the work has begun so many times more.
func (a *askers) more(n int) {
	a.TB.Helper()
	for range n {
		a.seen = append(a.seen, testbed.Got(a.TB, a.turns))
	}
}

// Five processes ask for the same job all the time. They are killed and paused, and the servers lose
// a primary, or two of five: the job never begins twice in an interval, and it goes on.
func TestOnceOnAFleetOfProcesses(t *testing.T) {
	const every = time.Second
	t.Run("replicas", func(t *testing.T) {
		t.Parallel()
		b := lay(t, server.Cluster(t, server.Owned()))
		primary, replica := b.pair(contested)
		b.asks(t, askJob{Addrs: b.D.Addrs(), Replicas: 1, Every: every}, func() {
			require.NoError(t, primary.Kill())
			require.NoError(t, replica.Promoted(b.Ctx))
			require.NoError(t, primary.Restart())
			primary, replica = replica, primary
			b.Eventually("the old primary follows", func() bool { return replica.Info(b.Ctx, "replication", "master_link_status") == "up" })
		})
	})
	t.Run("quorum", func(t *testing.T) {
		t.Parallel()
		b := several(t)
		var addrs []string
		for _, n := range b.D.Nodes() {
			addrs = append(addrs, n.Addr)
		}
		b.asks(t, askJob{Addrs: addrs, Quorum: true, Every: every, Guard: 1500 * time.Millisecond}, func() {
			two := b.some(2)
			require.NoError(t, server.Together(two, (*server.Node).Kill))
			require.NoError(t, server.Together(two, (*server.Node).Replace))
		})
	})
}

// asks lets the processes work over faults. lose lets the servers lose what the level survives.
func (b *bed) asks(t *testing.T, job askJob, lose func()) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	b.Ctx = ctx
	a := &askers{bed: b, job: job, turns: make(chan onceTurn, 10_000)}
	for range 5 {
		a.list = append(a.list, a.start())
	}
	defer func() {
		for _, p := range a.list {
			p.Kill()
		}
		a.heard.Wait()
	}()
	a.more(3)
	for round := range times(t, "HOLDFAST_LOSSES", 2) {
		i := round % len(a.list)
		a.list[i].Kill()
		a.list[i] = a.start()
		a.more(2)
		paused := a.list[(i+1)%len(a.list)]
		require.NoError(t, paused.Signal(syscall.SIGSTOP))
		a.more(2)
		require.NoError(t, paused.Signal(syscall.SIGCONT))
		a.more(2)
		lose()
		a.more(3)
	}
	a.more(len(a.turns))
	slices.SortFunc(a.seen, func(x, y onceTurn) int { return int(x.began - y.began) })
	// The interval was granted between the asking and the beginning. So the next one, which is granted
	// an interval later, cannot have begun earlier than that after the asking.
	closest := time.Duration(1 << 62)
	for i, turn := range a.seen[1:] {
		between := time.Duration(turn.began - a.seen[i].asked)
		closest = min(closest, between)
		require.GreaterOrEqual(t, between, job.Every, "turns %d and %d of %d", i, i+1, len(a.seen))
	}
	t.Logf("%d turns; from the asking for one to the beginning of the next at least %v", len(a.seen), closest)
}
