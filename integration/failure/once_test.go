package failure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
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
	p.Say("begins", time.Now().UnixNano())
	now := func() int64 { return time.Now().Add(-skew()).UnixNano() }
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
	t     *testing.T
	job   askJob
	skews []skewed // one for each process, by turns; nil: all have the machine's clock
	mu    sync.Mutex
	turns []onceTurn
	list  []*reexec.Process
	heard sync.WaitGroup
}

func (a *askers) start() *reexec.Process {
	a.job.Seed++
	var clock skewed
	if len(a.skews) > 0 {
		clock = a.skews[int(a.job.Seed)%len(a.skews)]
	}
	earliest := time.Now().Add(clock.by)
	p, err := reexec.Start(asker, a.job, clock.wear)
	require.NoError(a.t, err)
	line, err := p.Hear()
	require.NoError(a.t, err)
	var begins int64
	_, err = fmt.Sscanf(line, "begins %d", &begins)
	require.NoError(a.t, err, line)
	require.WithinRange(a.t, time.Unix(0, begins), earliest, time.Now().Add(clock.by), "its clock is not off by %v", clock.by)
	a.heard.Go(func() {
		for {
			line, err := p.Hear()
			if err != nil {
				return
			}
			var turn onceTurn
			if _, err := fmt.Sscan(line, &turn.asked, &turn.began); err != nil {
				continue // cut off by its death
			}
			a.mu.Lock()
			a.turns = append(a.turns, turn)
			a.mu.Unlock()
		}
	})
	return p
}

func (a *askers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.turns)
}

// Five processes ask for the same job all the time. They are killed and paused, and the servers lose
// a primary, or two of five: the job never begins twice in an interval, and it goes on.
func TestOnceOnAFleetOfProcesses(t *testing.T) { onceOnAFleet(t, nil) }

// The same with clocks that differ by up to four seconds, four intervals.
func TestOnceWhateverTheClocksSay(t *testing.T) {
	if os.Getenv("HOLDFAST_CLOCKS") == "" {
		t.Skip("skipped: it builds Go's standard library anew, which takes minutes; run it by make clocks")
	}
	program := buildSkewed(t)
	var skews []skewed
	for _, by := range []time.Duration{-2, -1, 0, 1, 2} {
		skews = append(skews, skewed{program, by * time.Second})
	}
	onceOnAFleet(t, skews)
}

func onceOnAFleet(t *testing.T, skews []skewed) {
	const every = time.Second
	t.Run("replicas", func(t *testing.T) {
		t.Parallel()
		b := lay(t, server.Cluster(t, server.Owned()))
		primary, replica := b.pair(contested)
		b.asks(t, skews, askJob{Addrs: b.D.Addrs(), Replicas: 1, Every: every}, func() {
			was := primary
			require.NoError(t, was.Kill())
			require.NoError(t, replica.Promoted(b.Ctx))
			require.NoError(t, was.Restart())
			b.Eventually("the old primary follows", func() bool { return was.Info(b.Ctx, "replication", "master_link_status") == "up" })
			primary, replica = replica, was
		})
	})
	t.Run("quorum", func(t *testing.T) {
		t.Parallel()
		b := lay(t, server.Several(t, 5, server.Owned()))
		nodes := b.D.Nodes()
		var addrs []string
		for _, n := range nodes {
			addrs = append(addrs, n.Addr)
		}
		b.asks(t, skews, askJob{Addrs: addrs, Quorum: true, Every: every, Guard: 1500 * time.Millisecond}, func() {
			two := rand.Perm(len(nodes))[:2]
			for _, i := range two {
				require.NoError(t, nodes[i].Kill())
			}
			for _, i := range two {
				require.NoError(t, nodes[i].Replace())
			}
		})
	})
}

// asks lets the processes work over faults. lose lets the servers lose what the level survives.
func (b *bed) asks(t *testing.T, skews []skewed, job askJob, lose func()) {
	var cancel context.CancelFunc
	b.Ctx, cancel = context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	a := &askers{t: t, job: job, skews: skews}
	for range 5 {
		a.list = append(a.list, a.start())
	}
	defer func() {
		for _, p := range a.list {
			p.Kill()
		}
		a.heard.Wait()
	}()
	more := func(n int) {
		t.Helper()
		want := a.count() + n
		b.Eventually(fmt.Sprintf("%d more turns", n), func() bool { return a.count() >= want })
	}
	more(3)
	for round := range times(t, "HOLDFAST_LOSSES", 2) {
		i := round % len(a.list)
		a.list[i].Kill()
		a.list[i] = a.start()
		more(2)
		paused := a.list[(i+1)%len(a.list)]
		require.NoError(t, paused.Signal(syscall.SIGSTOP))
		more(2)
		require.NoError(t, paused.Signal(syscall.SIGCONT))
		more(2)
		lose()
		more(3)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.SortFunc(a.turns, func(x, y onceTurn) int { return int(x.began - y.began) })
	// The interval was granted between the asking and the beginning. So the next one, which is granted
	// an interval later, cannot have begun earlier than that after the asking.
	closest := time.Duration(1 << 62)
	for i, turn := range a.turns[1:] {
		between := time.Duration(turn.began - a.turns[i].asked)
		closest = min(closest, between)
		require.GreaterOrEqual(t, between, job.Every, "turns %d and %d of %d", i, i+1, len(a.turns))
	}
	t.Logf("%d turns; from the asking for one to the beginning of the next at least %v", len(a.turns), closest)
}
