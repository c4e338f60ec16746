package failure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/quorum"
	"github.com/holdfast-go/holdfast/integration/server"
)

const (
	votingLease = time.Second
	votingGuard = 1200 * time.Millisecond
)

// fleet is clients that want one lock of independent servers.
type fleet struct {
	contest
	t     *testing.T
	nodes []*server.Node
}

// newFleet starts five servers, and as many clients as contend.
func newFleet(t *testing.T, opts ...server.Option) *fleet {
	t.Helper()
	b := lay(t, server.Several(t, 5, append(opts, server.Owned())...))
	q := &fleet{contest: contest{bed: b}, t: t, nodes: b.D.Nodes()}
	for range contenders {
		q.clients = append(q.clients, b.quorum(client.Config{Lease: votingLease, Guard: votingGuard, AutoLoad: true}))
	}
	return q
}

// quorum returns a client of its own on all servers, closed at the end of the test.
func (b *bed) quorum(cfg client.Config) *client.Client {
	b.TB.Helper()
	c, err := quorum.Open(b.D.ClientOptions(), b.Configured(cfg))
	require.NoError(b.TB, err)
	b.TB.Cleanup(c.Close)
	return c
}

// persisted keeps the data of servers that are killed: the system has what they wrote.
var persisted = []server.Option{
	server.WithConfig("appendonly", "yes"), server.WithConfig("appendfsync", "no"),
	server.WithConfig("auto-aof-rewrite-min-size", "4mb"),
}

// Clients want one lock without pause, and any two of its five servers are lost again and again:
// killed, to come back empty or with their data, or paused. Work goes on meanwhile, and nobody is
// ever inside beside another. HOLDFAST_LOSSES is how often each of this is done (default 2).
func TestQuorumLocksSurviveTheLossOfTwo(t *testing.T) {
	losses := times(t, "HOLDFAST_LOSSES", 2)
	q := newFleet(t, persisted...)
	var cancel context.CancelFunc
	q.Ctx, cancel = context.WithTimeout(t.Context(), time.Duration(losses+4)*time.Minute)
	defer cancel()
	defer q.contend()()
	q.everybodyEnters(votingGuard + recovery)
	var empty, data, emptyInARow, dataInARow, paused sum
	defer func() {
		t.Logf("two killed, back empty: %v", empty)
		t.Logf("two killed, back with their data: %v", data)
		t.Logf("two killed, and two more when they were back empty: %v", emptyInARow)
		t.Logf("two killed, and two more when they were back with their data: %v", dataInARow)
		t.Logf("two paused: %v", paused)
	}()
	q.reset()
	for i := range losses {
		q.losesTwo(&empty, (*server.Node).Replace)
		q.losesTwo(&data, (*server.Node).Restart)
		if i%2 == 0 {
			q.losesTwoInARow(&emptyInARow, (*server.Node).Replace)
		} else {
			q.losesTwoInARow(&dataInARow, (*server.Node).Restart)
		}
		q.pausesTwo(&paused)
		require.False(t, t.Failed(), "loss %d", i+1)
	}
}

// sum is what happened over the losses of one kind.
type sum struct {
	losses, during, entries, overlaps, disorder, lost, unreachable int

	gaps   []time.Duration // for each loss of two, the longest time without an entry
	pauses []time.Duration // for each loss of the majority, the time until an entry
}

func (s sum) String() string {
	return fmt.Sprintf("%d losses; %d entries, of these %d while two were lost; %d beside another, %d tokens out of order; "+
		"%d locks lost, %d calls unreachable; longest time without an entry of each loss of two: %s; until an entry after the loss of four: %s",
		s.losses, s.entries, s.during, s.overlaps, s.disorder, s.lost, s.unreachable, spread(s.gaps), spread(s.pauses))
}

func spread(some []time.Duration) string {
	n := len(some)
	if n == 0 {
		return "-"
	}
	slices.Sort(some)
	return fmt.Sprintf("median %v, 95%% %v, longest %v", some[n/2].Round(time.Millisecond), some[n*95/100].Round(time.Millisecond), some[n-1].Round(time.Millisecond))
}

func (s *sum) add(p period) {
	s.entries += p.total()
	s.overlaps += len(p.overlaps)
	s.disorder += p.disorder
	s.lost += p.lost
	s.unreachable += p.unreachable
}

// goesOn blocks until work went on while two servers were lost for longer than a lease: all votes
// that these had given are over by then.
func (q *fleet) goesOn(s *sum, from time.Time) {
	q.t.Helper()
	q.enter(contenders, recovery)
	<-time.After(time.Until(from.Add(votingLease * 5 / 4))) // the length of the loss, not an event
	q.enter(contenders, recovery)
	entries, longest := q.seen().within(span{from, time.Now()})
	s.losses++
	s.during += entries
	s.gaps = append(s.gaps, longest)
	q.t.Logf("two lost for %v: %d entries, longest without one %v", time.Since(from).Round(time.Millisecond), entries, longest.Round(time.Millisecond))
}

// enter blocks until so many entries more, of anybody: those who poll have no order.
func (q *fleet) enter(entries int, bound time.Duration) {
	q.t.Helper()
	total, deadline := q.seen().total()+entries, time.Now().Add(bound)
	for q.seen().total() < total {
		if time.Now().After(deadline) {
			require.Fail(q.t, "nobody is inside", "%d of %d entries in %v; on the servers: %v", q.seen().total()-total+entries, entries, bound, q.lock())
		}
		<-time.After(2 * time.Millisecond)
	}
}

// losesTwo kills two servers, and brings them back when work went on. It blocks until they vote.
func (q *fleet) losesTwo(s *sum, back func(*server.Node) error) {
	q.t.Helper()
	two := q.choose()[:2]
	q.kill(two)
	killed := time.Now()
	q.goesOn(s, killed)
	q.comeBack(two, back)
	q.judge(s, "killed", two, killed)
}

// losesTwoInARow kills two servers, and two more as soon as these are back. Nobody gets the lock then
// until the guard of the first two is over.
func (q *fleet) losesTwoInARow(s *sum, back func(*server.Node) error) {
	q.t.Helper()
	some := q.choose()
	first, next := some[:2], some[2:4]
	q.kill(first)
	killed := time.Now()
	q.goesOn(s, killed)
	began := time.Now()
	require.NoError(q.t, q.together(first, back))
	q.kill(next)
	gone := time.Now()
	q.enter(contenders, votingGuard+recovery)
	p := q.seen()
	closed := span{gone.Add(lateness), began.Add(votingGuard)}
	entries, _ := p.within(closed)
	assert.Zero(q.t, entries, "entries between %v and %v, with one server that remembers", closed.from.Format(clock), closed.to.Format(clock))
	for _, at := range p.at {
		if at.After(closed.to) {
			s.pauses = append(s.pauses, at.Sub(gone))
			break
		}
	}
	s.losses++
	q.comeBack(next, back)
	q.judge(s, "killed in a row", some[:4], killed)
}

// pausesTwo pauses two servers. They remember all, and do late what they were asked.
func (q *fleet) pausesTwo(s *sum) {
	q.t.Helper()
	two := q.choose()[:2]
	require.NoError(q.t, q.together(two, (*server.Node).Pause))
	paused := time.Now()
	q.goesOn(s, paused)
	require.NoError(q.t, q.together(two, (*server.Node).Resume))
	q.vote(two, recovery)
	q.judge(s, "paused", two, paused)
}

// choose returns the servers in any order.
func (q *fleet) choose() []*server.Node {
	some := slices.Clone(q.nodes)
	rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	return some
}

// together does something to servers at once.
func (q *fleet) together(nodes []*server.Node, do func(*server.Node) error) error {
	errs := make(chan error, len(nodes))
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() { errs <- do(n) })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (q *fleet) kill(nodes []*server.Node) {
	q.t.Helper()
	require.NoError(q.t, q.together(nodes, (*server.Node).Kill))
}

// comeBack brings servers back, and blocks until they vote: not before their guard is over.
func (q *fleet) comeBack(nodes []*server.Node, back func(*server.Node) error) {
	q.t.Helper()
	began := time.Now()
	require.NoError(q.t, q.together(nodes, back))
	q.vote(nodes, votingGuard+recovery)
	assert.GreaterOrEqual(q.t, time.Since(began), votingGuard, "they voted too early")
}

// vote blocks until servers have voted once more: they have a token that is newer than all before.
func (q *fleet) vote(nodes []*server.Node, bound time.Duration) {
	q.t.Helper()
	above, deadline := q.highest(), time.Now().Add(bound)
	for _, n := range nodes {
		for q.fence(n) <= above {
			if time.Now().After(deadline) {
				require.Fail(q.t, "no vote", "%s within %v; on the servers: %v", n.Addr, bound, q.lock())
			}
			<-time.After(2 * time.Millisecond)
		}
	}
}

// fence is the token that a server has for the lock, or 0.
func (q *fleet) fence(n *server.Node) int64 {
	m, err := n.Do(q.Ctx, "HGET", prefix+contested, "fence")
	if err != nil {
		return 0
	}
	fence, _ := m.AsInt64()
	return fence
}

// judge asserts that nobody was inside beside another since the last reset.
func (q *fleet) judge(s *sum, how string, nodes []*server.Node, began time.Time) {
	q.t.Helper()
	p := q.reset()
	q.alone(q.t, p)
	s.add(p)
	var names []string
	for _, n := range nodes {
		names = append(names, fmt.Sprint("s", slices.Index(q.nodes, n)))
	}
	q.t.Logf("%s: %s; vote again after %v: %d entries, %d locks lost, %d calls unreachable", how, strings.Join(names, " "),
		time.Since(began).Round(time.Millisecond), p.total(), p.lost, p.unreachable)
}
