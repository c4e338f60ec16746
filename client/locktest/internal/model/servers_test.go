package model

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/quorum"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// The tie of a quorum's clients: whatever the three servers have and answer, client/internal/quorum and
// the model's client get the lock, or keep it, or not; and leave the servers alike.

// standing is what a server has when it is asked, and what becomes of the answer.
type standing uint8

const (
	free standing = iota
	ours
	theirs
	young   // it came back empty
	down    // it runs nothing
	unheard // it is free, and its answer is lost
	standings
)

func (s standing) String() string {
	return [...]string{"free", "ours", "theirs", "young", "down", "free, unheard"}[s]
}

// scene is how the three servers stand. The first one has the line.
type scene [members]standing

func scenes() (all []scene) {
	for n := range int(standings * standings * standings) {
		at := standing(n)
		all = append(all, scene{at / (standings * standings), at / standings % standings, at % standings})
	}
	return all
}

// outcome is whether the client got the lock, or kept it, and which servers have it as its own after.
type outcome struct {
	yes   bool
	votes uint8
}

const leaseMS = 2 * tickMS

// trio is three embedded servers and a quorum's client of them.
type trio struct {
	world   *redis.World
	nodes   [members]*redis.Node // the first one has the line
	servers *quorum.Servers
	key     string
	close   func()
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	r := &trio{world: redis.New(redis.Options{Latency: 200 * time.Microsecond}), key: tiedKey}
	closing, cancel := context.WithCancelCause(context.Background())
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.key))
	line := int(h.Sum32() % members)
	var voters [members]quorum.Member
	var clients []rueidis.Client
	for i := range members {
		n := r.world.Node(fmt.Sprintf("s%d:6379", i))
		n.SetClock(time.Duration(i)*time.Second, 0) // so that no two tokens are the same
		if got := n.Do("FUNCTION", "LOAD", functions.Source); got != functions.Library {
			t.Fatalf("FUNCTION LOAD: %v", got)
		}
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{n.Addr()}, ForceSingleClient: true,
			MaxFlushDelay: -1, DisableCache: true, DisableRetry: true, DialCtxFn: r.world.Host("h").Dial})
		if err != nil {
			t.Fatal(err)
		}
		caller := &fcall.Caller{Redis: c, Pulse: fcall.NewPulse(), Heard: func() {}, Changed: func(string) {},
			Cached: func(error) {}, Demoted: func() {}, Closing: closing}
		voters[i] = func() (*fcall.Caller, error) { return caller, nil }
		r.nodes[(i-line+members)%members] = n
		clients = append(clients, c)
	}
	r.servers = quorum.New(voters[:], closing, func(string, string) {})
	r.close = func() {
		cancel(context.Canceled)
		r.servers.Close()
		for _, c := range clients {
			c.Close()
		}
		time.Sleep(time.Minute)
		r.world.Close()
		time.Sleep(10 * time.Second)
	}
	return r
}

// set makes the servers stand as a scene says.
func (r *trio) set(s scene, owner string) {
	for i, n := range r.nodes {
		n.Do("DEL", r.key)
		n.Do("FCALL", functions.Memory, "0")
		time.Sleep((leaseMS + tickMS) * time.Millisecond / members)
		if s[i] == young {
			r.world.Promote(n)
		}
	}
	time.Sleep(leaseMS * time.Millisecond)
	for i, n := range r.nodes {
		switch s[i] {
		case ours:
			n.Do("FCALL", functions.Acquire, "1", r.key, owner, text(leaseMS), "1", text(leaseMS))
		case theirs:
			n.Do("FCALL", functions.Acquire, "1", r.key, "theirs", text(leaseMS), "1", text(leaseMS))
		case young: // it begins to remember anew
			r.world.Promote(n)
		case down:
			n.Refuse(func([]string) redis.Error { return "LOADING it loads" })
		case unheard:
			n.LoseReply(func(words []string) bool { return words[0] == "FCALL" })
		}
	}
}

// heal ends what is wrong with the servers.
func (r *trio) heal() {
	for _, n := range r.nodes {
		n.Refuse(nil)
		n.LoseReply(nil)
	}
	time.Sleep(time.Minute)
}

func (r *trio) votes(owner string) (votes uint8) {
	for i, n := range r.nodes {
		if f := n.Hash(r.key); f != nil && f["owner"] == owner && f["until"] != "0" {
			votes |= 1 << i
		}
	}
	return votes
}

// acquires asks for the lock.
func (r *trio) acquires(t *testing.T, s scene, owner string) outcome {
	t.Helper()
	r.set(s, owner)
	defer r.heal()
	reply, err := r.servers.Acquire(context.Background(), fcall.Copies{}, r.key, r.request(owner))
	synctest.Wait()
	time.Sleep(time.Second)
	if err == nil && reply.Yes {
		r.tokens(t, s, owner, reply.Fence)
	}
	return outcome{err == nil && reply.Yes, r.votes(owner)}
}

func (r *trio) request(owner string) fcall.Request {
	return fcall.Request{Owner: owner, TTL: text(leaseMS), Guard: text(leaseMS), Block: 1}
}

// tokens looks whether a majority was raised to the holder's token, and it is not below a majority's.
func (r *trio) tokens(t *testing.T, s scene, owner string, fence int64) {
	t.Helper()
	raised, below := 0, 0
	for _, n := range r.nodes {
		f := n.Hash(r.key)
		if f == nil || f["owner"] != owner {
			continue
		}
		var has int64
		if _, err := fmt.Sscan(f["fence"], &has); err != nil {
			t.Fatal(err)
		}
		if has >= fence {
			raised++
		}
		if has <= fence {
			below++
		}
	}
	if raised < majority || below < majority {
		t.Errorf("%v: %d servers have the token or a higher one, and %d it or a lower one", s, raised, below)
	}
}

// renews renews the lock of an owner that is known to have asked for it.
func (r *trio) renews(s scene, owner string) outcome {
	for _, n := range r.nodes {
		n.Refuse(func([]string) redis.Error { return "LOADING it loads" })
	}
	_, _ = r.servers.Acquire(context.Background(), fcall.Copies{}, r.key, r.request(owner))
	r.heal()
	r.set(s, owner)
	defer r.heal()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	reply, err := r.servers.Renew(ctx, fcall.Copies{}, r.key,
		fcall.Renewal{Owner: owner, TTL: text(leaseMS), Fence: r.nodes[0].Now().UnixMicro()})
	time.Sleep(time.Second)
	return outcome{err == nil && reply.Yes, r.votes(owner)}
}

// staged is the model's quorum in a scene.
func staged(s scene, flaw Mistake) (*polled, Poll) {
	q := three("tie", attended)
	q.Flaw = flaw
	p := &polled{&q, q.rules(), nil}
	state := Poll{}
	for i := range members {
		m := &state.Members[i]
		m.Age = q.Guard
		switch s[i] {
		case young:
			m.Age = 0
		case ours:
			p.call(&state, i, Request{Kind: Acquire, Owner: ownerOf(0, 0)})
		case theirs:
			p.call(&state, i, Request{Kind: Acquire, Owner: ownerOf(1, 0)})
		}
	}
	return p, state
}

// plays lets the model's client hear what the servers say: all that answer, in their order. What comes
// after a majority has said yes to a renewal has its effect, and does not count.
func plays(p *polled, state *Poll, s scene, heard, lost Step) {
	for i := range members {
		for _, step := range []Step{heard, VoteLost, lost} {
			d := Deed{Step: step, Server: uint8(i)}
			late := state.Voters[0].Phase == Held && state.Voters[0].Asked == 0
			fits := step == heard || late
			if s[i] == unheard {
				fits = step == lost
			}
			if fits && s[i] != down && p.may(state, d) {
				p.apply(state, d)
			}
		}
	}
}

func (p *polled) outcome(state *Poll, yes bool) outcome {
	o := outcome{yes: yes}
	for i := range members {
		if state.Members[i].Lock.heldBy(ownerOf(0, 0)) {
			o.votes |= 1 << i
		}
	}
	return o
}

// modelAcquires is what the model says of acquires.
func modelAcquires(s scene, flaw Mistake) outcome {
	p, state := staged(s, flaw)
	p.apply(&state, Deed{Step: Opens})
	plays(p, &state, s, Vote, VoteLost)
	if d := (Deed{Step: Second}); p.may(&state, d) && p.prompt(&state, d) {
		p.apply(&state, d)
		plays(p, &state, s, Lift, LiftLost)
	}
	return p.outcome(&state, state.Voters[0].Phase == Held)
}

// modelRenews is what the model says of renews.
func modelRenews(s scene, flaw Mistake) outcome {
	p, state := staged(s, flaw)
	state.Voters[0] = Voter{Phase: Held, Left: 1, Used: 1, Fence: 9}
	p.apply(&state, Deed{Step: Renews})
	plays(p, &state, s, Lift, LiftLost)
	return p.outcome(&state, state.Voters[0].Left == p.Lease)
}

// TestTheQuorumsClientDecidesAsTheModelDoes ties the model's clients to client/internal/quorum.
func TestTheQuorumsClientDecidesAsTheModelDoes(t *testing.T) {
	differ := map[Mistake]int{}
	synctest.Test(t, func(t *testing.T) {
		r := newTrio(t)
		defer r.close()
		yes := 0
		for n, s := range scenes() {
			for _, c := range []struct {
				what string
				real outcome
				said func(scene, Mistake) outcome
			}{
				{"acquire", r.acquires(t, s, fmt.Sprintf("a%d", n)), modelAcquires},
				{"renewal", r.renews(s, fmt.Sprintf("r%d", n)), modelRenews},
			} {
				if want := c.said(s, NoMistake); c.real != want {
					t.Errorf("%s, servers %v: %+v, and the model %+v", c.what, s, c.real, want)
				}
				if c.real.yes {
					yes++
				}
				for _, flaw := range []Mistake{OneIsEnough, OneRenews, Unguarded} {
					if c.said(s, flaw) != c.real {
						differ[flaw]++
					}
				}
			}
		}
		t.Logf("%d scenes, %d times yes, mistakes are noticed in %v", 2*len(scenes()), yes, differ)
	})
	for _, flaw := range []Mistake{OneIsEnough, OneRenews, Unguarded} { // that the two can differ
		if differ[flaw] == 0 {
			t.Errorf("%v makes no difference", flaw)
		}
	}
}
