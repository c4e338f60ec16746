// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/dial"
	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/redis/rueidis"
)

// The times of connecting.
const (
	nextConnect  = 100 * time.Millisecond // between two tries, doubled up to lastConnect
	lastConnect  = 5 * time.Second
	asksIdentity = time.Second
	closeWait    = 250 * time.Millisecond // for connections to end by themselves; twice, within Close's second
)

// use begins to use a rueidis client.
func (s *servers) use(m *member, redis rueidis.Client) {
	cfg := fcall.Config{Redis: redis, AutoLoad: s.autoLoad, Closing: s.done, Heard: m.heard, Changed: func(string, bool) {},
		Untracked: func(error) {}, Demoted: func() {}}
	if m.wires != nil {
		cfg.Ended, cfg.Demoted = m.wires.Ended(), m.wires.Renew
	}
	m.caller.Store(fcall.New(cfg))
}

// connect waits until a majority has answered, and a moment for the others.
func (s *servers) connect(options []rueidis.ClientOption) error {
	answers := make(chan answer[any], len(options))
	for i, m := range s.members {
		option := options[i]
		m.wires, m.at = dial.NewWires(), option.InitAddress
		option.DisableCache = true
		option, _ = dial.Adapt(option, m.wires, nil)
		s.connecting.Go(func() {
			err := s.once(m, option)
			answers <- answer[any]{err: err}
			s.keepTrying(m, option, err)
		})
	}
	var wrong error
	p := s.poll()
	err := receive(s.done, s.closing, answers, s.need, moment, sure, func(a answer[any]) bool {
		p.add(fcall.Outcome{Err: a.err})
		if errors.Is(a.err, fcall.ErrArgument) {
			wrong = a.err
		}
		return wrong != nil
	})
	if err == nil && p.answered() < s.need {
		err = p.failure()
	}
	return cmp.Or(wrong, err)
}

// keepTrying connects, again and again after a first try failed. The log has that, and what is wrong with
// the options where that shows later.
func (s *servers) keepTrying(m *member, option rueidis.ClientOption, err error) {
	wrong := false
	for pause := nextConnect; err != nil; pause = min(2*pause, lastConnect) {
		was := wrong
		if wrong = errors.Is(err, fcall.ErrArgument); s.done.Err() == nil && (pause == nextConnect || wrong && !was) {
			s.log.Warn("holdfast: no connection to a server of the quorum; locks need a majority of them, and work without this one "+
				"while there is; it is tried again: look whether it runs, and at its address and password",
				"address", option.InitAddress, "error", err)
		}
		select {
		case <-time.After(pause):
		case <-s.done.Done():
			return
		}
		err = s.once(m, option)
	}
}

// once connects to a server that no other link leads to.
func (s *servers) once(m *member, option rueidis.ClientOption) error {
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return fcall.Classify(context.Background(), err)
	}
	if err = s.independent(redis, m); err != nil {
		redis.Close()
		return err
	}
	s.use(m, redis)
	return nil
}

// independent reports an error if a server is a Cluster, or shares its data with another one that has been
// connected to: it could have two votes. So it does for a replica, which has none.
func (s *servers) independent(redis rueidis.Client, m *member) error {
	ctx, cancel := context.WithTimeout(s.done, asksIdentity)
	defer cancel()
	info, err := redis.Do(ctx, redis.B().Info().Section("replication", "cluster").Build()).ToString()
	if err != nil {
		return fcall.Classify(context.Background(), err)
	}
	if redis.Mode() == rueidis.ClientModeCluster || strings.Contains(info, "\ncluster_enabled:1") {
		return fmt.Errorf("%w: it %w", fcall.ErrArgument, errCluster)
	}
	_, rest, _ := strings.Cut(info, "\nmaster_replid:")
	id, _, _ := strings.Cut(rest, "\r")
	if other, twice := s.histories.LoadOrStore(id, m); twice && id != "" && other != m {
		return fmt.Errorf("%w: two of the servers are one, or one is a replica of the other: those at %v and %v", fcall.ErrArgument, other.(*member).at, m.at)
	}
	if strings.Contains(info, "\nrole:slave") {
		s.histories.CompareAndDelete(id, m) // it is not used, and may be another one's
		return fmt.Errorf("%w: it is a replica, which cannot vote", fcall.ErrUnreachable)
	}
	return nil
}

// close ends all calls, and the connections that Open made, in bounded time: rueidis waits for the
// answers of a silent server.
func (s *servers) close() {
	s.end()
	var all sync.WaitGroup
	for _, m := range s.members {
		if m.wires == nil {
			continue
		}
		closing := func() {
			s.connecting.Wait()
			if c := m.caller.Load(); c != nil {
				c.Redis.Close()
			}
		}
		all.Go(func() { dial.End(closing, closeWait, m.wires) })
	}
	all.Wait()
}
