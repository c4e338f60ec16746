package model

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	tiedKey    = "lock:tied"
	scratchKey = "lock:scratch"
)

// edge is one call in one state.
type edge struct {
	lock    Lock
	env     Env
	request Request
	coarse  bool
	guard   int8 // 0: the lock is not guarded
}

// tied is an edge and what the model says that it does.
type tied struct {
	edge
	effect Effect
}

// record explores a configuration and returns each different call that a server ran.
func record(cfg Config, seen map[edge]bool) (out []tied, err error) {
	_, err = Explore(cfg, func(lock Lock, env Env, r Request, e Effect) {
		x := edge{lock, env, r, cfg.Coarse, 0}
		if cfg.Level == Guarded {
			x.guard = cfg.Guard
		}
		for i := range maxClients { // who is not there hears nothing
			if x.lock.find(ownerOf(i, 0)) < 0 && x.lock.find(ownerOf(i, 1)) < 0 && (r.Owner == 0 || r.Owner.client() != i) {
				x.env.Heard &^= 1 << i
				x.env.Pollers &^= 1 << i
			}
		}
		if !seen[x] {
			seen[x] = true
			out = append(out, tied{x, e})
		}
	})
	if errors.Is(err, errMore) { // the nearest states are enough
		err = nil
	}
	return out, err
}

// edges are the calls of some configurations that have all kinds of them.
var edges = recorded(func() []Config {
	return []Config{
		base("2 clients, clock stands still", clients(2), coarse),
		base("2 clients, promotion, clock stands still", clients(2), fails(Promotion), coarse, healthy,
			admit(Exclusion, Tokens), atMost(50_000)),
		base("2 clients, a poller", clients(2), polling(1)),
		base("2 clients, pollers", clients(2), polling(2), healthy),
		base("3 clients", healthy),
		base("2 clients, a break, lost subscriptions", clients(2), breaks, drops),
		base("2 clients, a stray", clients(2), strays(1)),
		base("2 clients, pollers, a stray", clients(2), polling(2), strays(1), healthy),
	}
})

// recorded returns the different calls of some configurations.
func recorded(configs func() []Config) func() ([]tied, error) {
	return sync.OnceValues(func() (out []tied, err error) {
		seen := map[edge]bool{}
		for _, cfg := range configs() {
			more, err := record(cfg, seen)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
		}
		return out, nil
	})
}

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
	conn, err := w.Dial(context.Background(), s.node.Addr(), nil, nil)
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

func channel(client int, live bool) string {
	if live {
		return "live" + strconv.Itoa(client)
	}
	return "dead" + strconv.Itoa(client)
}

func ownerName(o Owner) string {
	if o == 0 {
		return ""
	}
	return fmt.Sprintf("client%d.%d", o.client(), o.past())
}

// concrete is an edge in the library's terms, at one time of the server.
type concrete struct {
	*tied
	us, ms int64
	until  int64 // of the lock
	fence  int64 // of the lock
	variant
	hole bool // somebody left the middle of the line
}

// variant is one of the ways to make an edge concrete.
type variant struct {
	late bool // a tick's last millisecond, not its first
	void bool // an earlier call found that the lease had ended, and could not pass the lock on
}

// variants are all that make a difference.
func (x *tied) variants() []variant {
	if x.guard > 0 && x.lock.Owner != 0 && x.lock.Rem <= 0 && x.lock.waiters() > 0 {
		return []variant{{}, {late: true}, {void: true}}
	}
	return []variant{{}, {late: true}}
}

// token is a token of the model in microseconds.
func (c *concrete) token(t Token) int64 {
	now := int64(c.env.Now)
	switch {
	case t != 0 && t == c.lock.Fence:
		return c.fence
	case t == stale || t == 0:
		return c.fence - 1
	case c.coarse:
		return c.us + int64(t) - now
	case int64(t) > now: // a new one
		return c.us + int64(t) - now - 1
	}
	return c.us - 1000 + int64(t)
}

// since is a number of ticks in milliseconds, such that it tells silence from its opposite.
func since(ticks uint8, silence int8) int64 {
	switch {
	case int8(ticks) == silence:
		return silentMS
	case int8(ticks) > silence:
		return silentMS + 1
	}
	return int64(ticks) * tickMS
}

func concretize(cfg *Config, x *tied, us int64, v variant) *concrete {
	c := &concrete{tied: x, us: us, ms: us / 1000, variant: v}
	l := &x.lock
	if c.until = c.ms + tickMS*int64(l.Rem-1); v.late {
		c.until += tickMS - 1
	}
	if v.void {
		c.until = 0
	}
	switch {
	case x.coarse:
		c.fence = us + int64(l.Fence) - int64(x.env.Now)
	case l.Age > 0:
		c.fence = us - 1000*since(l.Age, cfg.Silence)
		if int8(l.Age) > cfg.Silence { // by a microsecond
			c.fence = us - 1000*silentMS - 1
		}
	default:
		c.fence = us - 1000 + int64(l.Fence)
	}
	c.hole = v.late && l.waiters() > 1 && l.Age == 0
	return c
}

func (c *concrete) channel(o Owner) string {
	if c.env.Pollers>>o.client()&1 != 0 {
		return ""
	}
	return channel(o.client(), c.env.Heard>>o.client()&1 != 0)
}

// key are the fields of the lock, as the library would have written them.
func (c *concrete) key(cfg *Config) map[string]string {
	l := &c.lock
	if l.Owner == 0 {
		return nil
	}
	fields := map[string]string{"owner": ownerName(l.Owner), "until": text(c.until), "fence": text(c.fence)}
	n := l.waiters()
	if n == 0 {
		if c.guard > 0 {
			fields["state"] = fmt.Sprintf("0 0 0 0 %d 0", c.fence) + c.guardText()
		}
		return fields
	}
	at := int64(7)
	for i, w := range l.Line[:n] {
		if i == 1 && c.hole {
			at++
		}
		ch, asked := c.channel(w.Owner), c.ms-since(w.Age, cfg.Silence)
		fields["w:"+text(at)] = fmt.Sprintf("%d 1 %d 0 %d %s%s", tickMS*int64(cfg.Lease), asked, len(ch), ch, ownerName(w.Owner))
		fields["at:"+ownerName(w.Owner)] = text(at)
		at++
	}
	fields["state"] = fmt.Sprintf("7 %d %d 0 %d 0", at, n, c.fence) + c.guardText()
	return fields
}

func text(n int64) string { return strconv.FormatInt(n, 10) }

// arguments are the words of a call. A function that gets more of them gets them here.
func (c *concrete) arguments(cfg *Config) []string {
	r := c.request
	ttl := text(tickMS * int64(cfg.Lease))
	switch r.Kind {
	case Acquire:
		words := []string{functions.Acquire, "1", tiedKey, ownerName(r.Owner), ttl}
		if c.guard > 0 {
			words = append(words, "1", text(c.guardMS()))
		}
		return words
	case Wait:
		words := []string{functions.Wait, "1", tiedKey, ownerName(r.Owner), ttl, c.channel(r.Owner)}
		if c.guard > 0 {
			words = append(words, "1", "31536000000", "", text(c.guardMS()))
		}
		return words
	case Renew:
		if r.Fence == 0 {
			return []string{functions.Renew, "1", tiedKey, ownerName(r.Owner), ttl}
		}
		return []string{functions.Renew, "1", tiedKey, ownerName(r.Owner), ttl, "", text(c.token(r.Fence))}
	case Release:
		return []string{functions.Release, "1", tiedKey, ownerName(r.Owner)}
	case Leave:
		if r.Fence == 0 {
			return []string{functions.Leave, "1", tiedKey, ownerName(r.Owner)}
		}
		return []string{functions.Leave, "1", tiedKey, ownerName(r.Owner), "", text(c.token(r.Fence))}
	}
	return []string{functions.Break, "1", tiedKey}
}

// after is the end of the lease that the call leaves.
func (c *concrete) after() int64 {
	if c.effect.Lease > 0 {
		return c.ms + tickMS*int64(c.effect.Lease)
	}
	return c.until
}

// reply is what the model says that the library replies.
func (c *concrete) reply(cfg *Config) []any {
	r, p := c.request, c.effect.Reply
	left := int64(0)
	switch {
	case p.Holder != 0:
		left = c.after() - c.ms
	case c.closed():
		left = c.youth()
	}
	switch {
	case r.Kind == Leave:
		return []any{bit(p.Yes)}
	case r.Kind == Release && p.Yes:
		return []any{int64(1), int64(0)}
	case r.Kind == Break && p.Yes:
		return []any{int64(1), ownerName(p.Holder), c.token(p.Fence)}
	case r.Kind == Break:
		return []any{int64(0), "", int64(0)}
	case p.Yes:
		return []any{int64(1), c.token(p.Fence), tickMS * int64(cfg.Lease), int64(1), int64(1)}
	case r.Kind == Wait:
		ch := c.channel(r.Owner)
		hears := bit(strings.HasPrefix(ch, "live"))
		fence := int64(0)
		if !p.Refused {
			fence = c.token(p.Fence)
		}
		return []any{int64(0), left, ownerName(p.Holder), int64(p.Waiters), c.ms, fence, hears}
	}
	return []any{int64(0), left, ownerName(p.Holder), int64(p.Waiters)}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// image is a key in words that can be compared.
type image struct {
	Owner, Until, Fence, Guard string
	Expires                    int64
	Line                       []string // 'owner, asked, channel'
}

// want is the key that the model says there is after the call.
func (c *concrete) want(cfg *Config) image {
	l := &c.effect.Lock
	if l.Owner == 0 {
		return image{Expires: -2}
	}
	im := image{Owner: ownerName(l.Owner), Until: text(c.after()), Fence: text(c.token(l.Fence)), Expires: c.after() + 1}
	if c.guard > 0 {
		im.Guard = text(c.guardMS())
	}
	for _, w := range l.Line[:l.waiters()] {
		asked := c.ms - since(w.Age, cfg.Silence)
		im.Line = append(im.Line, fmt.Sprintf("%s %d %s", ownerName(w.Owner), asked, c.channel(w.Owner)))
		im.Expires = c.after() + lineMS
	}
	if c.closed() {
		im.Until, im.Expires = "0", c.ms+lineMS+tickMS*int64(l.Exp-cfg.Line)
	}
	return im
}

// look reads a key back. It checks what the model has no words for.
func (s *server) look() (image, error) {
	expires, _ := s.node.Do("PEXPIRETIME", tiedKey).(int64)
	fields := s.node.Hash(tiedKey)
	if fields == nil {
		return image{Expires: expires}, nil
	}
	im := image{Owner: fields["owner"], Until: fields["until"], Fence: fields["fence"], Expires: expires}
	known := []string{"owner", "until", "fence", "channel", "state"}
	if state := fields["state"]; state != "" {
		var head, tail, count, turn, top, holds int64
		if _, err := fmt.Sscan(state, &head, &tail, &count, &turn, &top, &holds); err != nil {
			return im, fmt.Errorf("state %q: %w", state, err)
		}
		if words := strings.Split(state, " "); len(words) > 6 {
			im.Guard = strings.Join(words[6:], " ")
		}
		for n := head; n < tail; n++ {
			entry, there := fields["w:"+text(n)]
			if !there || entry[0] == '<' || entry[0] == '>' {
				continue
			}
			var ttl, block, asked, held, size int
			if _, err := fmt.Sscan(entry, &ttl, &block, &asked, &held, &size); err != nil {
				return im, fmt.Errorf("w:%d %q: %w", n, entry, err)
			}
			rest := strings.SplitN(entry, " ", 6)[5]
			owner := rest[size:]
			if fields["at:"+owner] != text(n) {
				return im, fmt.Errorf("at:%s is %q, not %d", owner, fields["at:"+owner], n)
			}
			known = append(known, "at:"+owner)
			im.Line = append(im.Line, fmt.Sprintf("%s %d %s", owner, asked, rest[:size]))
		}
		if int(count) != len(im.Line) || text(top) != im.Fence || holds != 0 {
			return im, fmt.Errorf("state %q with %d waiters and the token %s", state, len(im.Line), im.Fence)
		}
	}
	for name := range fields {
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "w:") {
			return im, fmt.Errorf("an unknown field %q", name)
		}
	}
	return im, nil
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
		expires := c.until + 1
		if c.lock.waiters() > 0 {
			expires = c.until + lineMS
		}
		if v.void {
			expires = c.ms + lineMS - tickMS
		}
		s.node.Do(words...)
		s.node.Do("PEXPIREAT", tiedKey, text(expires))
	}
	before := s.node.Hash(tiedKey)
	s.messages = nil
	call := c.arguments(cfg)
	reply := s.node.Do(append([]string{"FCALL"}, call...)...)
	after, err := s.look()
	told := slices.Clone(s.messages)
	next, wantNext := any(nil), any(nil)
	if x.coarse { // what the server remembers now shows in the next token that it gives
		next = s.node.Do("FCALL", functions.Acquire, "1", scratchKey, "another", "1000")
		wantNext = []any{int64(1), c.us + max(0, int64(x.effect.Last)+1-int64(x.env.Now)), int64(1000), int64(1), int64(1)}
		s.node.Do("DEL", scratchKey)
	}
	want := c.want(cfg)
	var wantTold []string
	if o := x.effect.Told; o != 0 {
		wantTold = []string{fmt.Sprintf("%s %s %s 1 %s", c.channel(o), want.Fence, want.Until, want.Owner)}
	}
	switch {
	case err != nil:
	case !reflect.DeepEqual(reply, any(c.reply(cfg))):
		err = fmt.Errorf("replied %v, and the model %v", reply, c.reply(cfg))
	case !reflect.DeepEqual(after, want):
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

// TestTie makes each call of the model with the library.
func TestTie(t *testing.T) {
	all, err := edges()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	calls, err := replay(t, functions.Source, all)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[Kind]int{}
	for _, x := range all {
		kinds[x.request.Kind]++
	}
	for k := Acquire; k <= Break; k++ {
		if kinds[k] == 0 {
			t.Errorf("no call of %v", k)
		}
	}
	t.Logf("%d calls of %v agree, %v", calls, kinds, time.Since(began).Round(time.Millisecond))
}
