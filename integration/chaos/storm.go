// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// storm is the faults of a round while they strike.
type storm struct {
	*round
	ctx     context.Context // ends with the storm
	history *history
	crew    *crew
	servers *servers
	working sync.WaitGroup
}

// lane is one fault after the other, chosen by a generator of its own.
type lane struct {
	*storm
	random *rand.Rand
	kinds  []kind
	lost   stamp // when a server had lost its memory last; all have none at first
}

// The lanes that are not alike in all rounds.
const (
	handLane   = 4
	serverLane = 5
)

// seldom is by how much a lane's pauses are longer in a round.
var seldom = []float64{1, 1, 3, 8}

// start begins the storm: faults of different lanes meet each other.
func (s *storm) start(seed uint64) {
	lanes := []struct {
		kinds []kind
		do    func(*lane, kind) error
		pause time.Duration // between two, on average
	}{
		{networkKinds, (*lane).network, 80 * time.Millisecond},
		{networkKinds, (*lane).network, 80 * time.Millisecond},
		{networkKinds, (*lane).network, 80 * time.Millisecond},
		{clientKinds, (*lane).client, 300 * time.Millisecond},
		{handKinds, (*lane).hand, 200 * time.Millisecond},
		{s.servers.shape.kinds, (*lane).server, 300 * time.Millisecond},
	}
	for i, each := range lanes {
		if s.terms.Guard > 0 { // one lane has all that makes a server forget, to leave calm between
			switch i {
			case handLane:
				each.kinds = slices.DeleteFunc(slices.Clone(handKinds), kind.losesMemory)
			case serverLane:
				each.kinds = append(slices.Repeat(each.kinds, 4), libReplace, libFlush)
				each.do = (*lane).forget
			}
		}
		l := &lane{storm: s, random: rand.New(rand.NewPCG(seed, uint64(i)+1)),
			kinds: s.servers.shape.of(s.Profile, each.kinds), lost: now()}
		l.kinds = slices.DeleteFunc(l.kinds, func(k kind) bool {
			return s.Soak && k == clientKill || !strings.HasPrefix(string(k), s.Only)
		})
		if len(l.kinds) == 0 {
			continue
		}
		// In one round a lane strikes all the time, in another one now and then: some states are
		// only reached between faults of another kind.
		mean := float64(each.pause) * seldom[l.random.IntN(len(seldom))]
		if i == serverLane && s.servers.shape.quorum() { // losses are far enough apart, or not to be
			mean = float64(each.pause)
		}
		s.working.Go(func() {
			pause := func() { l.rest(time.Duration(l.random.Float64() * 2 * mean)) }
			for pause(); s.ctx.Err() == nil; pause() {
				// One that could not be done is in the record, and counted.
				_ = each.do(l, l.kinds[l.random.IntN(len(l.kinds))])
			}
		})
	}
	s.working.Go(s.watch)
}

// rest pauses a lane.
func (s *storm) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
	}
}

// strike does a fault and notes it.
func (s *storm) strike(f fault, do func() error) error {
	end := s.history.begin(f)
	err := do()
	end(err)
	return err
}

// span is a random time: most are short, and a few so long that leases end.
func (l *lane) span(short, long time.Duration) time.Duration {
	if l.random.Float64() < 0.08 {
		return time.Duration(l.random.Float64() * float64(long))
	}
	return time.Duration(l.random.Float64() * float64(short))
}

// network strikes between one client process and one server, or all.
func (l *lane) network(k kind) error {
	p := l.crew.places[l.random.IntN(len(l.crew.places))]
	hit, to := p.wires.all[:p.wires.data], "all servers"
	if n := len(hit); n > 1 && l.random.Float64() < 0.7 {
		i := l.random.IntN(n)
		hit, to = hit[i:i+1], p.wires.nodes[i].Addr
	}
	d := l.span(400*time.Millisecond, 4*time.Second)
	late := time.Duration(l.random.Float64() * float64(100*time.Millisecond))
	cut := l.random.Float64() < 0.5
	lost := 1 + l.random.IntN(3)
	begin, end := (*server.Proxy).Stall, (*server.Proxy).Resume
	switch k {
	case netPartition:
		cut = true
	case netRequests:
		begin = (*server.Proxy).StallRequests
	case netReplies:
		begin = (*server.Proxy).StallReplies
	case netSilence:
		cut = false
	case netDelay:
		begin, cut = func(p *server.Proxy) { p.Delay(late) }, false
		end = func(p *server.Proxy) { p.Delay(0) }
	case netReset:
		begin, d = (*server.Proxy).Cut, 0
	case netLostReply:
		begin, d = func(p *server.Proxy) { p.DropReplies(lost, "FCALL") }, 0
	}
	f := fault{Kind: k, Target: l.crew.named(p) + " to " + to, Detail: fmt.Sprintf("for %v", d)}
	return l.strike(f, func() error {
		if hit.each(begin); d == 0 {
			return nil
		}
		l.rest(d)
		if cut {
			hit.each((*server.Proxy).Cut)
		}
		hit.each(end)
		return nil
	})
}

// client strikes a client process.
func (l *lane) client(k kind) error {
	p := l.crew.places[l.random.IntN(len(l.crew.places))]
	d := l.span(800*time.Millisecond, 10*time.Second)
	f := fault{Kind: k, Target: l.crew.named(p)}
	if k == clientPause {
		f.Detail = fmt.Sprintf("for %v", d)
	}
	return l.strike(f, func() error {
		if k == clientPause {
			return l.crew.pause(p, func() { l.rest(d) })
		}
		return l.crew.replace(p)
	})
}

// server strikes a server. The fault lasts until the deployment is whole again.
func (l *lane) server(k kind) error {
	if k.isCut() {
		return l.cut(k)
	}
	s := l.servers
	do, target := s.plan(k, l.random)
	f := fault{Kind: k, Target: target}
	return l.strike(f, func() error {
		if planned(k) {
			s.failovers.Add(1)
			defer s.failovers.Add(1)
		}
		err := do(l.rest)
		return errors.Join(err, s.whole())
	})
}
