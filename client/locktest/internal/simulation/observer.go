// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// observer sees what servers write and what clients believe. Its mutex is taken under the nodes'
// mutexes, so nothing that it guards may call a node, or anything of a Lock but the channel of its
// context.
type observer struct {
	seed    uint64
	profile string        // its name, to replay it
	mix     profile       // what it came to
	slack   time.Duration // how far a server's time can go on within a function
	latency time.Duration

	mu      sync.Mutex
	history history
	report  *Report
	locks   map[string]*lock
	cause   map[*redis.Node]redis.Call // the function that runs there
	stale   map[*redis.Node]bool       // deposed by force, and not a replica yet
	drift   map[*redis.Node]float64
	began   map[*redis.Node]time.Time    // its memory, by what it said last
	retold  map[*redis.Node]oracle.Cause // why its memory may be another than the primary's before
	moving  map[string]bool              // keys that migrate, or are deleted by hand; of several servers with '@' and the server
	need    int                          // servers that make a majority; 0: each lock has one primary
	partial bool                         // a minority of them is never there
	skewed  bool                         // clocks were stepped: tokens may fall with a memory that is lost
	forgot  bool                         // a server's memory of tokens was lost

	faults     int // under way
	calmFrom   time.Time
	faulty     bool                // there has been any fault
	libMissing time.Time           // the functions were missing somewhere until then
	hosts      map[string]*process // by their labels
	onGrant    chan string         // gets the names of locks that are handed over; nil: nobody listens
}

// term is what the primary says of a lock's only holder, or of the one in a slot.
type term struct {
	owner string // "": free
	fence int64
	since time.Time // when its owner got it
	until time.Time // when the lease can end, by the local clock
	stays time.Time // until when a minimum keeps it
	short bool      // its lease was shortened, or is so short that waiters may not know it
	timer *time.Timer
	gen   int
}

// lock is what is known of one lock: at its primary, and in the processes.
type lock struct {
	name  string
	crowd bool      // most who want it are limited or share it
	term            // of who has it alone
	terms []*term   // that, and those of slots
	kind  int       // of the slots
	head  int       // the limit of the first in line; less than 0: there is no line
	free  time.Time // since when nobody has it, or nobody gave a slot back

	late   bool            // it became free by the end of such a lease, or a slot by the end of any
	level  bool            // all replicas have what clients count on
	closed time.Time       // until when nobody gets it, by a guard
	kept   time.Time       // the same, by a minimum
	keeps  map[int]*holder // whose that is, by slot
	moved  bool            // its slot has moved: rueidis looks where it is once a second, so new waiters ask at first
	landed landing         // where the last move brought its key

	every  time.Duration    // of a name for values; 0: it is a lock
	values map[string]*made // all
	good   *made            // the last that the server had

	stranded bool // and the failover under way loses it there

	votes      map[*redis.Node]*votes // of several servers
	tokenOwner string                 // of several servers: whose token is

	token    int64 // the highest that was seen
	holders  []*holder
	wants    map[*want]bool
	judge    oracle.Judge // knows what took the lock from its owners
	releases []releaseCall
	told     map[string]time.Time // when a wait was last answered 'not yours', by owner
	grants   []grant
	ghosts   map[string]bool // owners that a failover or a restart brought back, or that others use
	lenders  map[string]bool // processes of which others use an owner
	register register
	wanted   map[string]time.Time // until when each process wanted it
}

// everybody is the owner of a loss that concerns all holders, and all who were asking for the lock.
const everybody = ""

func newObserver(seed uint64, name string, mix profile, names []string) *observer {
	o := &observer{seed: seed, profile: name, mix: mix, history: history{began: time.Now()}, report: NewReport(), locks: map[string]*lock{},
		cause: map[*redis.Node]redis.Call{}, stale: map[*redis.Node]bool{}, drift: map[*redis.Node]float64{}, began: map[*redis.Node]time.Time{}, retold: map[*redis.Node]oracle.Cause{}, moving: map[string]bool{},
		hosts: map[string]*process{}, calmFrom: time.Now()}
	for _, name := range names {
		l := &lock{name: name, head: -1, keeps: map[int]*holder{}, judge: oracle.Judge{Exact: true}, level: mix.replicated, free: time.Now(), votes: map[*redis.Node]*votes{}, wants: map[*want]bool{}, values: map[string]*made{}, told: map[string]time.Time{}, ghosts: map[string]bool{}, lenders: map[string]bool{}, wanted: map[string]time.Time{}}
		l.terms, o.locks[name] = []*term{&l.term}, l
	}
	return o
}

const maxBroken = 12

// broken notes a violation. o.mu is held.
func (o *observer) broken(name string, invariant int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	o.history.add(name, "!!!", "invariant %d: %s", invariant, text)
	o.report.Count(Violations, strconv.Itoa(invariant), 1)
	if len(o.report.Broken) < maxBroken {
		o.report.Broken = append(o.report.Broken, Violation{o.seed, o.profile, invariant, name + ": " + text, o.history.of(name)})
	}
}

// unless is broken, or counts what admits it. o.mu is held.
func (o *observer) unless(why oracle.Cause, name string, invariant int, format string, args ...any) {
	if why == oracle.None {
		o.broken(name, invariant, format, args...)
		return
	}
	o.report.Count(Admitted, string(why), 1)
}

// breaks is broken for those who do not hold o.mu; so are locked, for any work, and tell, for the history.
func (o *observer) breaks(name string, invariant int, format string, args ...any) {
	o.locked(func() { o.broken(name, invariant, format, args...) })
}

func (o *observer) tell(name, who, format string, args ...any) {
	o.locked(func() { o.history.add(name, who, format, args...) })
}

func (o *observer) locked(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

const prefix = "lock:"

func (o *observer) byKey(key string) *lock {
	name, ours := strings.CutPrefix(key, prefix)
	if !ours {
		return nil
	}
	return o.locks[name]
}

func (o *observer) called(c redis.Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.report.Calls++
	if len(c.Keys) == 0 {
		return
	}
	l := o.byKey(c.Keys[0])
	if l == nil {
		return
	}
	o.cause[c.Node] = c
	verb := strings.TrimPrefix(c.Function, "holdfast_")
	o.history.add(l.name, c.Node.Addr(), "%s %s -> %v", verb, strings.Join(c.Args, " "), c.Reply)
	reply, _ := c.Reply.([]any)
	_, yes := c.Reply.(int64)
	yes = yes || len(reply) > 0 && reply[0] == int64(1)
	if len(reply) > 4 && reply[4] == functions.WhySettling {
		left, _ := reply[1].(int64)
		o.closing(l, c.Node, left)
	}
	switch {
	case verb == "finish" && yes:
		o.finished(l, c)
	case verb == "break" && yes:
		l.lose(reply[1].(string), oracle.Broken)
	case verb == "release" && slices.Contains(c.Args, functions.OptAll) && yes:
		l.lose(c.Args[0], oracle.Ended)
	case verb == "wait" && !yes && len(reply) > 0:
		if len(l.told) > 5000 {
			clear(l.told)
		}
		l.told[c.Args[0]] = time.Now()
	case verb == "release":
		l.releases = append(l.releases, releaseCall{c.Args[0], time.Now(), yes})
		if len(l.releases) > 64 {
			l.releases = l.releases[32:]
		}
	}
}

func (o *observer) published(p redis.Published) {
	if p.Forwarded {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.byKey(p.Message[strings.LastIndexByte(p.Message, ' ')+1:]); l != nil { // its key comes last
		o.history.add(l.name, p.Node.Addr(), "publishes %q to %d", p.Message, p.Receivers)
		select {
		case o.onGrant <- l.name:
		default:
		}
	}
}

// lose notes that an owner may have lost the lock. Of everybody, that is also whoever gets it in memory
// from who has it now, by a call that begins later.
func (l *lock) lose(owner string, why oracle.Cause) {
	now, all := stamp(time.Now()), &l.judge.Faults
	*all = append(*all, &oracle.Fault{Name: string(why), Cause: why, Owner: owner, Start: now, End: now})
	if owner == everybody && l.owner != "" {
		l.lose(l.owner, why)
	}
	if len(*all) > 400 {
		*all = (*all)[200:]
	}
}

// state is what a key's fields say.
type state struct {
	owner string
	fence int64
	until int64 // the first ms of the server's clock that is over
	kept  int64 // the same of a minimum
}

// packed is the integer that is a double at a place of a text.
func packed(text string, at int) int64 {
	return int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(text[at:]))))
}

// keptAt is where functions/holdfast.lua packs a minimum into a lock's state.
const keptAt = 8 * 8

func stateOf(fields map[string]string) state {
	s := state{owner: fields["owner"]}
	s.fence, _ = strconv.ParseInt(fields["fence"], 10, 64)
	s.until, _ = strconv.ParseInt(fields["until"], 10, 64)
	if text := fields["state"]; len(text) >= keptAt+8 {
		s.kept = packed(text, keptAt)
	}
	return s
}

// statesOf is also what they say of each slot.
func statesOf(fields map[string]string) []state {
	all, crowd := []state{stateOf(fields)}, fields["crowd"]
	for i := crowdAt; i < len(crowd); i++ {
		s, slot := state{}, fields[fmt.Sprintf("h:%d", i-crowdAt+1)]
		if crowd[i] == '1' && len(slot) > slotAt {
			s.until, s.fence, s.kept = packed(slot, 0), packed(slot, 8), packed(slot, 16)
			s.owner = slot[slotAt+int(binary.LittleEndian.Uint16([]byte(slot[slotAt-2:]))):]
		}
		all = append(all, s)
	}
	return all
}

// Where functions/holdfast.lua packs the characters of slots into a crowd, and the channel into a slot.
const crowdAt, slotAt = 3 * 8, 5*8 + 2

// nth is the state of a slot.
func nth(all []state, slot int) state {
	if slot < len(all) {
		return all[slot]
	}
	return state{}
}

// lineOf is the places of those in line, and the limit of the first: less than 0 if there is none.
func lineOf(fields map[string]string) (places map[string]int, head int) {
	places, head = map[string]int{}, -1
	first := math.MaxInt
	for name, value := range fields {
		owner, is := strings.CutPrefix(name, "at:")
		n, err := strconv.Atoi(value)
		if !is || err != nil {
			continue
		}
		if places[owner] = n; n < first {
			first = n
			head = int(max(0, -packed(fields["w:"+value], 8))) // tokens, or a limit
		}
	}
	return places, head
}

func (s state) live(nowUS int64) bool { return s.owner != "" && s.until > nowUS/1000 }

func (o *observer) wrote(w redis.Write) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.byKey(w.Key)
	if l == nil || w.Replica {
		return
	}
	before, after := statesOf(w.Before), statesOf(w.After)
	c, called := o.cause[w.Node]
	called = called && len(c.Keys) > 0 && c.Keys[0] == w.Key && c.NowUS == w.NowUS
	delete(o.cause, w.Node)
	o.history.add(l.name, w.Node.Addr(), "key: %s%s", describe(after, w), map[bool]string{true: " (expired)"}[w.Expired])
	o.checkKey(l, w)
	places, head := lineOf(w.After) // it may have begun anew
	was, _ := lineOf(w.Before)
	for slot, s := range after {
		if s.owner == "" || s.fence == nth(before, slot).fence {
			continue
		}
		l.granted(s.fence, s.owner, slot)
		mine, waited := was[s.owner]
		for first, place := range was {
			if _, waits := places[first]; called && waits && (!waited || place < mine) {
				o.broken(l.name, 10, "%s is served before %s, who is first in line", s.owner, first)
			}
		}
	}
	if o.need > 0 {
		o.voted(l, w, before[0], after[0], c, called)
		return
	}
	held := slices.ContainsFunc(l.terms, func(t *term) bool { return t.owner != "" })
	if !o.stale[w.Node] && (w.Left || w.Expired && held && before[0].fence != l.fence) {
		return // a copy that a failover brought back after its slot had moved
	}
	slots := make([]int, max(len(before), len(after), len(l.terms)))
	for i := range slots {
		slots[i] = i
	}
	// One call can grant several, and a later one a lower slot.
	slices.SortStableFunc(slots, func(a, b int) int { return cmp.Compare(nth(after, a).fence, nth(after, b).fence) })
	for _, slot := range slots {
		o.wroteTerm(l, l.slot(slot), w, nth(before, slot), nth(after, slot), c, called)
	}
	if crowd := w.After["crowd"]; crowd != "" && !o.stale[w.Node] {
		l.kind = int(packed(crowd, 0))
	}
	if !o.stale[w.Node] {
		l.head = head
	}
}

// slot is a lock's term, for one who has it alone 0.
func (l *lock) slot(n int) *term {
	for len(l.terms) <= n {
		l.terms = append(l.terms, &term{})
	}
	return l.terms[n]
}

// of is the term of an owner; nil: it has none.
func (l *lock) of(owner string) *term {
	for _, t := range l.terms {
		if t.owner == owner {
			return t
		}
	}
	return nil
}

func (o *observer) wroteTerm(l *lock, t *term, w redis.Write, before, after state, c redis.Call, called bool) {
	if o.stale[w.Node] {
		if after.live(w.NowUS) {
			l.lose(after.owner, oracle.Deposed)
		}
		if after.live(w.NowUS) && after.owner != before.owner {
			l.lose(after.owner, oracle.DeposedGrants)
		}
		if before.owner != after.owner || before.live(w.NowUS) && !after.live(w.NowUS) { // given back there: the new primary keeps it until its lease ends
			l.ghosts[before.owner] = true
		}
		return
	}
	if o.retold[w.Node] != "" {
		o.compare(l, t, before, w.Node, w.NowUS)
	}
	changed := before.owner != after.owner || before.fence != after.fence
	if changed && before.live(w.NowUS+o.slack.Microseconds()) && !o.moving[l.name] && !ended(c, called, before.owner) {
		o.broken(l.name, 2, "the server ended the lease of %s %d ms early", before.owner, before.until-w.NowUS/1000)
	}
	if !changed && !before.live(w.NowUS-o.slack.Microseconds()) && after.live(w.NowUS) {
		o.broken(l.name, 2, "the server revives the lease of %s, %d ms after its end", after.owner, w.NowUS/1000-before.until)
	}
	if changed && after.owner != "" && after.until > 0 {
		o.checkToken(l, after.fence, after.owner, !o.moving[l.name])
	}
	o.note(l, t, after, w)
	if changed && !o.moving[l.name] {
		o.checkOutlived(l, before.owner, "the server gave it to another")
	}
}

// local is when a server's clock says ms, by the local clock.
func (o *observer) local(n *redis.Node, ms, nowUS int64) time.Time {
	left := time.Duration(ms*1000-nowUS) * time.Microsecond
	return time.Now().Add(time.Duration(float64(left) / (1 + o.drift[n])))
}

func describe(all []state, w redis.Write) string {
	if w.After == nil {
		return "gone"
	}
	text := ""
	for slot, s := range all {
		text += fmt.Sprintf("%d: owner %q fence %d until %+d ms; ", slot, s.owner, s.fence, s.until-w.NowUS/1000)
	}
	return text
}

// ended reports whether a call may end the owner's lease early.
func ended(c redis.Call, called bool, owner string) bool {
	if !called {
		return false
	}
	switch strings.TrimPrefix(c.Function, "holdfast_") {
	case "break":
		return true
	case "release", "leave", "finish":
		return c.Args[0] == owner
	}
	return false
}

// checkKey looks at what must hold of every key.
func (o *observer) checkKey(l *lock, w redis.Write) {
	if w.After == nil {
		return
	}
	o.report.Count(Checks, "8 key", 1)
	if w.End == 0 {
		o.broken(l.name, 8, "the key has no TTL: %v", w.After)
	}
	for _, field := range []string{"owner", "until", "fence"} {
		if w.After[field] == "" && (field != "owner" || w.After["crowd"] == "") {
			o.broken(l.name, 8, "the key has no %s: %v", field, w.After)
		}
	}
}

// checkToken looks at the token of a grant.
func (o *observer) checkToken(l *lock, fence int64, owner string, fresh bool) {
	o.report.Count(Checks, "3 token", 1)
	if fresh && fence <= l.token {
		why := oracle.None
		if o.skewed && o.forgot {
			why = oracle.Back
		}
		o.unless(why, l.name, 3, "token %d of %s after %d", fence, owner, l.token)
	}
	l.token = max(l.token, fence)
}

// note takes over what the primary has.
func (o *observer) note(l *lock, t *term, s state, w redis.Write) {
	now := time.Now()
	shrunk := s.owner != "" && s.owner == t.owner && s.fence == t.fence
	until := time.Time{}
	if s.live(w.NowUS) {
		until = o.local(w.Node, s.until, w.NowUS)
	}
	t.stays = time.Time{}
	if kept := o.local(w.Node, s.kept, w.NowUS); s.kept > 0 && kept.After(now) {
		t.stays, l.kept = kept, latest(l.kept, kept)
	}
	shrunk = shrunk && !until.IsZero() && until.Before(t.until)
	fresh := s.owner != t.owner || s.fence != t.fence
	if until.IsZero() {
		if t.owner != "" {
			l.free = now
			if t.until.Before(now) {
				l.free = t.until
			}
			l.late = (t.short || t != &l.term) && t.until.Before(now)
		}
		t.owner, t.fence = "", s.fence
		t.gen++
		return
	}
	if s.owner != t.owner {
		t.since = now
	}
	t.owner, t.fence, t.until = s.owner, s.fence, until
	t.gen, l.late = t.gen+1, l.late && t != &l.term
	gen := t.gen
	d := until.Sub(now)
	if t.timer != nil {
		t.timer.Stop()
	}
	t.timer = time.AfterFunc(d, func() { o.over(l, t, gen) })
	t.short = t.short && !fresh || until.Sub(now) < waitersAsk || shrunk
	for _, h := range l.holders {
		if shrunk {
			go o.checkDeadline(l, h)
		}
	}
}

// over is when the lease can end at the primary.
func (o *observer) over(l *lock, t *term, gen int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t.gen != gen {
		return
	}
	o.report.Count(Checks, "2 lease ends", 1)
	o.history.add(l.name, "server", "the lease of %s is over", t.owner)
	o.checkOutlived(l, t.owner, "its lease is over at the server")
	t.owner, l.free, l.late = "", time.Now(), t.short || t != &l.term
}

// stop ends the timers.
func (o *observer) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.locks {
		for _, t := range l.terms {
			t.gen++
			if t.timer != nil {
				t.timer.Stop()
			}
		}
	}
}
