// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/holdfast-go/holdfast/integration/seeded"
	"github.com/holdfast-go/holdfast/integration/server"
)

const (
	steps = 120                     // of a sequence
	long  = 5200 * time.Millisecond // longer than any waiter is believed in without asking again
	phase = 3500 * time.Millisecond // shorter than that

	moment = time.Millisecond // what has so long a time has ended when a step is over

	enough = 960         // steps at each server; more until each kind that has to be was compared
	most   = time.Minute // for them, ten times of what a quiet machine needs
)

func TestMain(m *testing.M) { os.Exit(leaks.Check(m.Run())) }

// The embedded Redis does to random commands what a real one does. HOLDFAST_SEED repeats one sequence.
func TestDifferential(t *testing.T) {
	now := uint64(time.Now().UnixNano())
	first := seeded.Setting(t, "HOLDFAST_SEED", now, seeded.Number)
	server.Each(t, func(t *testing.T, f server.Flavour) {
		m := newMatch(t, f)
		began := time.Now()
		for seed := first; seed == first || first == now && !m.done(time.Since(began)); seed++ {
			m.sequence(t, seed)
		}
		t.Logf("%d sequences, %d steps; compared were %v", m.sequences, m.steps, m.tally)
		if m.steps < enough {
			return // one seed, or a machine that has no time: the log says what was compared
		}
		for _, kind := range wanted {
			if m.tally[kind] == 0 {
				t.Errorf("not one %s was compared", kind)
			}
		}
	})
}

func flavourOf(t *testing.T, n *server.Node) (redis.Flavour, bool) {
	t.Helper()
	switch v := n.Info(t.Context(), "server", "redis_version"); {
	case n.Info(t.Context(), "server", "server_name") == "valkey":
		return redis.Valkey, true
	case strings.HasPrefix(v, "7.0."):
		return redis.Redis70, true
	default:
		return redis.Redis80, strings.HasPrefix(v, "8.")
	}
}

func real(d *server.Deployment) *side {
	addr := d.Addrs()[0]
	return &side{name: "real", dial: func() (net.Conn, error) { return net.DialTimeout("tcp", addr, 10*time.Second) }}
}

func embedded(t *testing.T, f redis.Flavour) *side {
	t.Helper()
	w := redis.New(redis.Options{Flavour: f, Unmodelled: func(_, text string) { t.Errorf("not modelled: %s", text) }})
	w.Node("a:1")
	t.Cleanup(w.Close)
	return &side{name: "embedded", dial: func() (net.Conn, error) { return w.Host("").Dial(context.Background(), "a:1", nil, nil) }}
}

// match is the comparison of two sides.
type match struct {
	real, embedded   *side
	sequences, steps int
	tally            map[string]int // what was compared, by kind
}

// newMatch starts a server, and the embedded one that imitates it.
func newMatch(t *testing.T, f server.Flavour) *match {
	t.Helper()
	d := server.Single(t, server.WithFlavour(f), server.Owned())
	flavour, known := flavourOf(t, d.Nodes()[0])
	if !known {
		t.Skipf("no flavour of the embedded Redis imitates %s", f)
	}
	m := &match{real: real(d), embedded: embedded(t, flavour), tally: map[string]int{}}
	t.Cleanup(m.real.end)
	t.Cleanup(m.embedded.end)
	return m
}

// wanted are the kinds of messages that have to be compared.
var wanted = []string{"granted", "invalidate"}

// done reports whether enough was compared after some time.
func (m *match) done(took time.Duration) bool {
	all := !slices.ContainsFunc(wanted, func(kind string) bool { return m.tally[kind] == 0 })
	return m.steps >= enough && all || took >= most
}

// count adds what arrived to the tally: errors by their code, messages by what they say.
func (m *match) count(v any) {
	switch v := v.(type) {
	case failure:
		code, _, _ := strings.Cut(string(v), " ")
		m.tally[code]++
	case push:
		kind := fmt.Sprint(v[0])
		if text, ok := v[len(v)-1].(string); ok && kind == "smessage" {
			kind, _, _ = strings.Cut(text, " ")
			if token(kind) > 0 {
				kind = "granted"
			}
		}
		m.tally[kind]++
	case []any:
		if len(v) == 3 && v[0] == "smessage" { // of RESP2
			m.count(push(v))
			return
		}
		for _, x := range v {
			m.count(x)
		}
	}
}

// sequence plays the steps of a seed. What ends by itself in it, ends within a moment, before anybody
// looks.
func (m *match) sequence(t *testing.T, seed uint64) {
	t.Helper()
	for _, s := range []*side{m.real, m.embedded} {
		if err := s.begin(); err != nil {
			t.Fatal(err)
		}
	}
	m.sequences++
	s, j := newSource(seed), judge{tokens: map[string][2]int64{}}
	var history []string
	rested, start := s.IntN(8) > 0, time.Now()
	todo := s.first(seed)
	for range steps {
		st := s.step()
		if len(todo) > 0 {
			st, todo = todo[0], todo[1:]
		}
		switch {
		case !rested && time.Since(start) > time.Second:
			st, rested = step{pause: long}, true
		case time.Since(start) > phase:
			return
		}
		m.steps++
		history = append(history, st.String())
		began := time.Now()
		time.Sleep(st.pause)
		if st.pause == long {
			start = time.Now()
		}
		a, b := both(t, m.real, m.embedded, st)
		if time.Since(began) > st.pause+time.Second {
			return // the machine stood still, and a time can be over at one side only
		}
		if diff := j.compare(st, a, b); diff != "" {
			t.Fatalf("HOLDFAST_SEED=%d\nthe real and the embedded one differ:\n%s\nafter\n  %s", seed, diff, strings.Join(history, "\n  "))
		}
		for _, key := range locks {
			s.held[key] = a.keys[key]["owner"] != nil
		}
		for _, stream := range a.streams {
			m.count(stream)
		}
	}
}
