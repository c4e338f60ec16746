package model

import (
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// The tie between the model's rules and the library: each different call that the model made is
// made with the real library too, on a key that is built from the model's lock.

// What a tick is, and the library's own constants, in milliseconds. They are not read from the
// source: a change there must be noticed.
const (
	tickMS     = 2000 // the provisional lease
	lineMS     = 60_000
	silentMS   = 5000
	slackMS    = 20_000 // a line's bound is not written anew for less
	tiedKey    = "lock:tied"
	scratchKey = "lock:scratch"
)

// server is an embedded Redis with a library, and somebody who listens on each live channel.
type server struct {
	world    *redis.World
	node     *redis.Node
	source   string
	plays    int
	messages []string
	offset   time.Duration
}

func serve(t *testing.T, source string) *server {
	t.Helper()
	s := &server{source: source}
	w := redis.New(redis.Options{Hooks: redis.Hooks{Publish: func(p redis.Published) {
		s.messages = append(s.messages, p.Channel+" "+p.Message)
	}}})
	t.Cleanup(w.Close)
	s.world, s.node = w, w.Node("10.0.0.1:6379")
	s.node.Do("DEBUG", "SET-ACTIVE-EXPIRE", "0")
	if got := s.node.Do("FUNCTION", "LOAD", source); got != functions.Library {
		t.Fatalf("FUNCTION LOAD: %v", got)
	}
	conn, err := w.Host("").Dial(context.Background(), s.node.Addr(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n$10\r\nSSUBSCRIBE\r\n", 1+maxClients)
	for i := range maxClients {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(channel(i, true)), channel(i, true))
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	synctest.Wait()
	return s
}

// play makes one call, and returns in what the library differs from the model.
func (s *server) play(cfg *Config, x *tied, v variant) error {
	s.offset += 100*time.Second + 1001*time.Microsecond // all keys expire, and the time is above all tokens
	s.node.SetClock(s.offset, 0)
	s.plays++
	c := concretize(cfg, x, s.node.Now().UnixMicro(), v)
	if x.guard > 0 {
		s.remember(c)
	}
	if x.coarse && x.env.Last >= x.env.Now {
		for i := range int(x.env.Last-x.env.Now) + 1 { // the server remembers that token
			s.node.Do("FCALL", functions.Acquire, "1", scratchKey+strconv.Itoa(i), "scratch", "1000")
		}
	}
	s.node.Do("DEL", tiedKey)
	if fields := c.key(cfg); fields != nil {
		words := []string{"HSET", tiedKey}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			words = append(words, name, fields[name])
		}
		s.node.Do(words...)
		s.node.Do("PEXPIREAT", tiedKey, text(c.expires()))
	}
	before := s.node.Hash(tiedKey)
	others := s.others(before)
	s.messages = nil
	call := c.arguments(cfg)
	reply := s.node.Do(append([]string{"FCALL"}, call...)...)
	after, err := s.look()
	if now := s.others(s.node.Hash(tiedKey)); err == nil && now != others {
		err = fmt.Errorf("left %d other keys, of %d", now, others)
	}
	told := slices.Clone(s.messages)
	next, wantNext := any(nil), any(nil)
	if x.coarse { // what the server remembers now shows in the next token that it gives
		next = s.node.Do("FCALL", functions.Acquire, "1", scratchKey, "another", "1000")
		wantNext = c.us + max(0, int64(x.effect.Last)+1-int64(x.env.Now))
		s.node.Do("DEL", scratchKey)
	}
	want := c.want(cfg)
	var wantTold []string
	if o := x.effect.Told; o != 0 {
		wantTold = []string{fmt.Sprintf("%s %s %s 1 %d %s %s", c.channel(o), want.Fence, want.Until, len(want.Owner), want.Owner, tiedKey)}
	}
	switch {
	case err != nil:
	case !reflect.DeepEqual(reply, c.reply(cfg)):
		err = fmt.Errorf("replied %v, and the model %v", reply, c.reply(cfg))
	case !after.is(want, c.expires()):
		err = fmt.Errorf("left   %+v\nand the model %+v", after, want)
	case !reflect.DeepEqual(next, wantNext):
		err = fmt.Errorf("gave %v next, and the model %v", next, wantNext)
	case !slices.Equal(told, wantTold):
		err = fmt.Errorf("published %q, and the model %q", told, wantTold)
	case x.guard > 0:
		err = s.afterwards(c)
	}
	if err != nil {
		return fmt.Errorf("%q at %d us on %q:\n%w", call, c.us, before, err)
	}
	return nil
}

// others is how many other keys there are.
func (s *server) others(tied map[string]string) int64 {
	n, _ := s.node.Do("DBSIZE").(int64)
	if tied != nil {
		n--
	}
	return n
}

// replay makes all calls with a library until one differs from the model. It returns how many it
// made.
func replay(t *testing.T, source string, all []tied) (calls int, err error) {
	t.Helper()
	cfg := base("tie")
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, source)
		for i := range all {
			for _, v := range all[i].variants() {
				calls++
				if err = s.play(&cfg, &all[i], v); err != nil {
					return
				}
			}
		}
	})
	return calls, err
}

// ties are the calls that are tied, and the changes of the library that must be noticed by them.
var ties = []struct {
	what      string
	edges     func() ([]tied, error)
	mutations []mutation
}{
	{"plain", edges, mutations},
	{"guarded", guardedEdges, guardMutations},
	{"joinable", jointEdges, jointMutations},
	{"several servers", votedEdges, raiseMutations},
}

// TestTie makes each call of the model with the library, and then with the library changed in one place
// after the other.
func TestTie(t *testing.T) {
	kinds := map[Kind]int{}
	for _, tie := range ties {
		all, err := tie.edges()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			kinds[x.request.Kind]++
		}
		t.Run(tie.what, func(t *testing.T) {
			calls, err := replay(t, functions.Source, all)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d calls agree", calls)
		})
		for _, m := range tie.mutations {
			t.Run(m.name, func(t *testing.T) { m.noticed(t, all) })
		}
	}
	for k := Acquire; k <= Raise; k++ {
		if kinds[k] == 0 {
			t.Errorf("no call of %v", k)
		}
	}
	t.Log(kinds)
}

func (m mutation) noticed(t *testing.T, all []tied) {
	if n := strings.Count(functions.Source, m.old); n != 1 {
		t.Fatalf("the library has %q %d times, not once: change it in another way", m.old, n)
	}
	calls, err := replay(t, strings.Replace(functions.Source, m.old, m.new, 1), all)
	if err == nil {
		t.Fatalf("not noticed in %d calls", calls)
	}
	t.Logf("noticed by call %d: %v", calls, err)
}
