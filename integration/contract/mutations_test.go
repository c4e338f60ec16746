package contract

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/server"
)

// mutation is a change of the library that a promise must catch, or the random calls.
type mutation struct{ name, old, new, promise string }

var mutations = []mutation{
	// the long way
	{"a call shortens the lease", "lock.ends = min(max(lock.ends, now + ttl), now + lock.longest)", "lock.ends = now + ttl", ""},
	{"a lease has no cap", "min(max(lock.ends, now + ttl), now + lock.longest)", "max(lock.ends, now + ttl)", "a lease is no longer than was asked for"},
	{"a key moves the last token", "return last > above and last or above + 1", "last = last > above and last or above + 1\n  return last", "a key moves nobody else's tokens"},
	{"a token ahead is forgotten", "if top > us and top > last and top <= us + AHEAD_US then", "if false then", "a token ahead of the clock is remembered"},
	{"a token is ahead for ever", " and top <= us + AHEAD_US then", " then", "a token ahead of the clock is remembered"},
	{"a renewal leaves the expiry", "local moves = grants or math.abs", "local moves = math.abs", "a renewal sets the expiry that it grants"},
	{"leave keeps", "    lock.kept = 0\n    left = give_back", "    left = give_back", ""},
	{"release does not keep", "  confirm(lock)\n  local left = give_back", "  lock.kept = 0\n  local left = give_back", ""},
	{"a grant that nobody took up is kept", "if waiter.minimum > 0 then lock.due", "if waiter.minimum > 0 then lock.kept", ""},
	{"a minimum counts from after the grant", "lock.due = ms(us) + waiter.minimum + 1 end", "lock.due = ms(us) + waiter.minimum + 500 end", "a minimum counts from the grant"},
	{"a minimum is handed over", "  if ms(us) < lock.kept then return end\n", "", ""},
	{"a break keeps", "    lock.kept, lock.writes = 0, true\n", "    lock.writes = true\n", ""},
	{"a break leaves no record", "if held and not ask.FORGET then", "if false then", ""},
	{"a record is heard by all", "and (fence and fence == lock.broken or not fence and owner == lock.victim) then", "then", ""},
	{"a record outlives its time", "now + RECORD_MAX_MS)", "now + 10 * RECORD_MAX_MS)", "a record has its time"},
	{"holds of before stay", "lock.writes, lock.channel, lock.ids = true, w.channel, w.holds", "lock.writes, lock.channel = true, w.channel", ""},
	{"the channel of before stays", "lock.writes, lock.channel, lock.ids = true, w.channel, w.holds", "lock.writes, lock.ids = true, w.holds", ""},
	{"a waiter's guard is forgotten", "    lock.guard = longest_guard(lock, guard, w.ttl)\n    w.asked", "    w.asked", ""},
	{"a hand-over asks no guard", "lock.closed = has_line(lock) and too_young(lock.guard, us) or 0", "lock.closed = 0", ""},
	{"a hold is added by a young memory", "      lock.closed = too_young(guard, us)\n      if lock.closed > 0 then", "      if false then", "young"},
	{"another one's guard refuses", "  guard = max(lock.guard, guard)\n", "  if guard > 0 and ttl > guard then fail('HFARG ttl_ms') end\n  guard = max(lock.guard, guard)\n  if guard > 0 and ttl > guard then fail('HFARG ttl_ms') end\n", "guard"},
	{"a large owner is answered", "or holder == owner or #holder > MAX_BYTES", "or holder == owner", "big fields are read once"},
	{"a grant does not name its lock", "return #key <= MAX_BYTES and text .. ' ' .. key or text", "return text", ""},
	{"leave with FENCE takes the place", "local left = not fence and not lock.absent and unqueue", "local left = not lock.absent and unqueue", ""},
	{"leave tells its caller by the reply", "  lock.caller = nil -- the reply tells nobody of a new grant: a message must\n", "", ""},
	{"a refused publish ends it", "    if type(try('SPUBLISH', lock.tell, text)) == 'number' then return end\n", "    try('SPUBLISH', lock.tell, text)\n    do return end\n", "refused"},
	{"a repeated RAISE is refused", "    and (not fence or fence == lock.fence or raise == lock.fence) -- the last: it is a repeat\n", "    and (not fence or fence == lock.fence)\n", "a raised token can be asked for again"},
	{"a run is not ended by LAST", "lock.top = max(lock.fence, min(lock.top, used or lock.top))", "lock.top = lock.fence", "a run ends with what was used of it"},
	{"a mark is not checked", "return nil, to and to > n and to + 1 or n + 1", "return nil, to and to + 1 or n + 1", "crafted"},
	{"the dead are not swept out", "  sweep(lock, us)\n", "", "swept"},
	{"a raise begins no memory", "  if raise and not held_by(lock, owner) then age(us) end\n", "", "pause"},
	{"a renewal begins no memory", "    too_young(lock.guard, us)\n", "", "pause"},
	{"a renewal is longer than the guard", "    lock.guard = longest_guard(lock, 0, ttl)\n", "", "guard"},
	{"who must wait is not told for how long", "return '', lock.closed, 'settling'", "return '', 0, 'settling'", "young"},
	// the plain cases
	{"plain take: no expiry", "create(key, ends, 'owner', owner, 'until', ends, 'fence', digits(fence))", "create(key, digits(2 * stays), 'owner', owner, 'until', ends, 'fence', digits(fence))", ""},
	{"plain take: a young memory", "if guard and (guard < ttl or too_young(guard, us) > 0) then return nil end", "if guard and guard < ttl then return nil end", "straight down"},
	{"plain take: any guard", "if guard and (guard < ttl or too_young(guard, us) > 0) then return nil end", "if guard and too_young(guard, us) > 0 then return nil end", "straight down"},
	{"plain take: the guard is not kept", "fence, stays, 0, guard, 0, 0, ttl, 0, 0, 0))", "fence, stays, 0, 0, 0, 0, ttl, 0, 0, 0))", "straight down"},
	{"plain take: the guard's lease is not kept", "fence, stays, 0, guard, 0, 0, ttl, 0, 0, 0))", "fence, stays, 0, guard, 0, 0, 1, 0, 0, 0))", "straight down"},
	{"plain busy: not who is refused", "or holder == owner or #holder > MAX_BYTES", "or #holder > MAX_BYTES", ""},
	{"plain renew: shortens", "ends = max(ends, now + ttl + 1)", "ends = now + ttl + 1", ""},
	{"plain renew: any token", "args[3] ~= 'FENCE' or args[4] ~= v[3])", "args[3] ~= 'FENCE')", ""},
	{"plain renew: revives", "if now >= ends or fence > us and fence > last then return nil end", "if fence > us and fence > last then return nil end", "an ended lease is settled first"},
	{"plain renew: leaves the expiry", "    call('PEXPIREAT', key, text)\n  elseif", "  elseif", "a renewal sets the expiry that it grants"},
	{"plain renew: forgets a token ahead", "if now >= ends or fence > us and fence > last then return nil end", "if now >= ends then return nil end", "a token ahead of the clock is remembered"},
	{"plain renew line: the key goes with the lease", "  call('PEXPIREAT', key, digits(expires))\n  return true", "  call('PEXPIREAT', key, digits(ends))\n  return true", ""},
	{"plain release: drops a minimum", "if holds ~= 0 or kept ~= 0 or due ~= 0 then return nil end", "if holds ~= 0 then return nil end", ""},
	{"plain release: drops holds", "if holds ~= 0 or kept", "if kept", ""},
	{"plain release: drops a token ahead", "  if top > last and top > clock() then return nil end\n", "", "a token ahead of the clock is remembered"},
	{"plain hand-over: to the deaf", "or w.minimum > 0 or subscribers(w.channel) == 0 then", "or w.minimum > 0 then", ""},
	{"plain hand-over: forgets the minimum", "or w.minimum > 0 or subscribers", "or subscribers", "release of a grant keeps"},
	{"plain hand-over: a whole lease", "now + min(w.ttl, PROVISIONAL_MS) + 1\n  local token", "now + w.ttl + 1\n  local token", ""},
	{"plain hand-over: of an ended lease", "if not ends or not fence or now >= ends or us <= top", "if not ends or not fence or us <= top", "an ended lease is settled first"},
	{"plain hand-over: the run is forgotten", "if head + 1 == tail and top == fence then", "if head + 1 == tail then", "a run is told to the last in line"},
	{"plain hand-over: a refused publish ends it", "if type(told) ~= 'number' then", "if false then", "refused"},
	{"plain join: takes another's place", "    nth = plain_ask", "    nth = 1 or plain_ask", ""},
	{"plain join: no expiry of the line", "    if moves then call('PEXPIREAT', key, digits(expires)) end\n  end\n  return { 0", "  end\n  return { 0", ""},
	{"plain ask: joins in another way", "mine.owner ~= owner or mine.holds ~= ''", "mine.owner ~= owner", ""},
}

// catcher is a test whose failure is what is wanted: it stops the check there.
type catcher struct {
	testing.TB
	cleanups []func()
}

func (c *catcher) Helper()                           {}
func (c *catcher) Name() string                      { return c.TB.Name() }
func (c *catcher) Cleanup(f func())                  { c.cleanups = append(c.cleanups, f) }
func (c *catcher) Logf(string, ...any)               {}
func (c *catcher) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (c *catcher) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (c *catcher) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// catches runs a check on a mutated library and returns how it failed.
func catches(t *testing.T, d *server.Deployment, source string, check func(b *bed)) (text string) {
	c := &catcher{TB: t}
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r) // a check that stumbles has noticed too
		}
		for _, f := range slices.Backward(c.cleanups) {
			f()
		}
	}()
	b := &bed{tb: c, d: d, addr: d.Addrs()[0], run: "mutation" + fmt.Sprint(time.Now().UnixNano()), source: source}
	b.c = b.dial(2)
	b.c.do("FLUSHALL")
	b.load()
	check(b)
	return ""
}

// special are checks that need more than a server and a key.
var special = map[string]func(b *bed){
	"refused":       refusedPublish,
	"guard":         func(b *bed) { b.forget(); longestGuard(b, b.key("k")) },
	"crafted":       func(b *bed) { marksPointForward(b, b.key("k")) },
	"swept":         func(b *bed) { sweepsHead(b, b.key("k")) },
	"pause":         func(b *bed) { pauseBegins(b, b.key("k")) },
	"straight down": func(b *bed) { b.forget(); straightDown(b, b.key("k")) },
	"young":         func(b *bed) { b.forget(); youngMemory(b, b.key("k")) },
	"": func(b *bed) {
		for seed := range uint64(12) {
			its := *b // keys and channels of its own: what the last one left would be taken for a mistake
			its.run += fmt.Sprint("-", seed)
			random(b.tb, &its, seed, 12_000)
		}
	},
}

// Each of these changes is one that somebody could make, and each is caught.
func TestMutationsAreCaught(t *testing.T) {
	f, err := server.Default()
	if err != nil {
		t.Fatal(err)
	}
	d := shareOwn(t, f)
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			if strings.Count(functions.Source, m.old) != 1 {
				t.Fatalf("the mutation no longer fits: %q is there %d times", m.old, strings.Count(functions.Source, m.old))
			}
			check, is := special[m.promise]
			if !is {
				check = func(b *bed) { promises[m.promise](b, b.key("k")) }
			}
			text := catches(t, d, strings.Replace(functions.Source, m.old, m.new, 1), check)
			if text == "" {
				t.Error("nothing failed")
			}
			t.Logf("%.200s", text)
		})
	}
}
