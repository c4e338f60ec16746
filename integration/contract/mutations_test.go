// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/seeded"
	"github.com/holdfast-go/holdfast/integration/server"
)

// mutation is a change of the library that a promise must catch, or the random calls.
type mutation struct{ name, old, new, promise string }

var mutations = []mutation{
	// the long way
	{"a call shortens the lease", "mine.ends = min(max(mine.ends, now + ttl), now + mine.longest)", "mine.ends = now + ttl", ""},
	{"a lease has no cap", "min(max(mine.ends, now + ttl), now + mine.longest)", "max(mine.ends, now + ttl)", "a lease is no longer than was asked for"},
	{"a key moves the last token", "return last > above and last or above + 1", "last = last > above and last or above + 1\n  return last", "a run ends with what was used of it"},
	{"a token ahead is forgotten", "if top > us and top > last and top <= us + AHEAD_US + MAX_TOKENS then", "if false then", "a token ahead of the clock is remembered"},
	{"a token is ahead for ever", " and top <= us + AHEAD_US + MAX_TOKENS then", " then", "a token ahead of the clock is remembered"},
	{"a renewal leaves the expiry", "local moves = grants or math.abs", "local moves = math.abs", "a renewal sets the expiry that it grants"},
	{"leave keeps", "    mine.kept = 0\n    left = give_back", "    left = give_back", ""},
	{"ALL gives back what is not joinable", "if (lock.holds > 0) ~= (all or hold ~= nil) then", "if not all and (lock.holds > 0) ~= (hold ~= nil) then", ""},
	{"release does not keep", "  confirm(mine)\n  local left = give_back", "  mine.kept = 0\n  local left = give_back", ""},
	{"a grant that nobody took up is kept", "if waiter.minimum > 0 then mine.due", "if waiter.minimum > 0 then mine.kept", ""},
	{"a minimum counts from after the grant", "mine.due = ms(us) + waiter.minimum + 1 end", "mine.due = ms(us) + waiter.minimum + 500 end", "a minimum counts from the grant"},
	{"a minimum is handed over", "  if ms(us) < lock.kept then return end\n", "", ""},
	{"a break keeps", "    end_minimum(lock)\n    lock.writes = true\n", "    lock.writes = true\n", ""},
	{"a break leaves no record", "if worked and not ask.FORGET then", "if false then", ""},
	{"a record is heard by all", "ms(us) < lock.recorded and (fence and fence == lock.broken or not fence and owner == lock.victim\n    or lock.victim == ALL and (fence or 0) < lock.broken) then", "ms(us) < lock.recorded then", ""},
	{"a record outlives its time", "now + RECORD_MAX_MS)", "now + 10 * RECORD_MAX_MS)", "a record has its time"},
	{"holds of before stay", "lock.top, lock.channel, lock.ids = run_end(fence, w.tokens, us), w.channel, w.holds", "lock.top, lock.channel = run_end(fence, w.tokens, us), w.channel", ""},
	{"the channel of before stays", "lock.top, lock.channel, lock.ids = run_end(fence, w.tokens, us), w.channel, w.holds", "lock.top, lock.ids = run_end(fence, w.tokens, us), w.holds", ""},
	{"a waiter's guard is forgotten", "    lock.writes, lock.guard = lock.writes or longest > lock.guard, longest --", "    --", ""},
	{"a hand-over asks no guard", "lock.closed = has_line(lock) and too_young(lock.guard, us) or 0", "lock.closed = 0", ""},
	{"a young memory hands over", "while lock.closed == 0 and has_line(lock) and lock.steps < STEPS do", "while has_line(lock) and lock.steps < STEPS do", ""},
	{"who names a token is not told of a grant", "parse(key, v, not fence and owner or nil)", "parse(key, v, owner)", ""},
	{"a hold is added by a young memory", "      lock.closed = too_young(guard, us)\n      if lock.closed > 0 then", "      if false then", "a young memory grants nothing guarded"},
	{"another one's guard refuses", "  guard = max(lock.guard, guard)\n", "  if guard > 0 and ttl > guard then fail('HFARG ttl_ms') end\n  guard = max(lock.guard, guard)\n  if guard > 0 and ttl > guard then fail('HFARG ttl_ms') end\n", "a lock keeps the longest guard"},
	{"a large owner is answered", "or has == owner or #has > MAX_BYTES", "or has == owner", "big fields are read once"},
	{"a grant does not name its lock", "return #key <= MAX_BYTES and text .. ' ' .. key or text", "return text", ""},
	{"leave with FENCE takes the place", "local left = not fence and not lock.absent and unqueue", "local left = not lock.absent and unqueue", ""},
	{"leave tells its caller by the reply", "  lock.caller = nil -- the reply tells nobody of a new grant: a message must\n", "", "who leaves for a while hears of its turn"},
	{"a refused publish ends it", "    if refused then\n", "    if false then\n", "a refused publish goes on to the next"},
	{"a repeated RAISE is refused", "fence ~= mine.fence and raise ~= mine.fence", "fence ~= mine.fence", ""},
	{"a run is not ended by LAST", "lock.top = max(lock.fence, min(lock.top, used or lock.top))", "lock.top = lock.fence", "a run ends with what was used of it"},
	{"a mark is not checked", "return nil, to and to > n and to + 1 or n + 1", "return nil, to and to + 1 or n + 1", "marks only point forward"},
	{"the dead are not swept out", "  sweep(lock, us)\n", "", "a join sweeps the head"},
	{"a raise begins no memory", "  if raise and not mine then age(us) end\n", "", "a pause begins with the first guarded call"},
	{"a renewal begins no memory", "    too_young(lock.guard, us)\n", "", "a pause begins with the first guarded call"},
	{"a renewal is longer than the guard", "    lock.guard = longest_guard(lock, 0, ttl)\n", "", "a lock keeps the longest guard"},
	{"who must wait is not told for how long", "return '', lock.closed, 'settling'", "return '', 0, 'settling'", "a young memory grants nothing guarded"},
	// values
	{"a value outlives a break", "    end_minimum(lock)\n    lock.writes = true\n", "    lock.kept, lock.writes = 0, true\n", ""},
	{"a value outlives its minimum", "  if lock.kept > 0 then put(lock, 'value', false) end\n", "", ""},
	{"a value is read after its minimum", "lock.ends == 0 and ms(us) < lock.kept and call", "lock.ends == 0 and call", ""},
	{"a value is anybody's", " or value:sub(1, #token) ~= token then", " then", "a value is only what it says"},
	{"a value has any length", "#value > #token + MAX_VALUE or ", "", "a value is only what it says"},
	{"too much is kept", "if #value > MAX_VALUE then fail(", "if false then fail(", ""},
	{"a reader stays in line", "  if mine then unlink(lock, n, mine.owner) end\n  commit", "  commit", ""},
	{"a reader that does not wait stays in line", "return acquire(key, args, fields_and_place(key, owner))", "return acquire(key, args, fields(key))", ""},
	{"a value shortens a minimum", "lock.kept = max(lock.kept, ms(us) + keep + 1)", "lock.kept = ms(us) + keep + 1", "a value has its time"},
	{"a value shortens a minimum that is due", "  confirm(mine)\n  lock.kept = max", "  lock.kept = max", "a value has its time"},
	{"a value leaves the expiry", "  commit(lock, us, true)\n  tell_next(", "  commit(lock, us)\n  tell_next(", "a value has its time"},
	{"any token finishes", "if not mine or fence and fence ~= mine.fence then\n", "if not mine then\n", ""},
	{"several finish", "if mine.slot or lock.holds > 0 then", "if lock.holds > 0 then", ""},
	{"a joinable lock is finished", "if mine.slot or lock.holds > 0 then", "if mine.slot then", ""},
	{"a repeated finish is refused", "and kept_value(lock, us) then return 1 end", "and false then return 1 end", ""},
	{"anybody repeats a finish", "if lock.owner == owner and (fence or", "if (fence or", ""},
	{"finish tells nobody", "  tell_next(lock, 3 * STEPS)\n", "", ""},
	{"nobody hears of long turns", "if long or lock.steps", "if lock.steps", "the next in line hears of long turns"},
	{"the next hears of every turn", "LONG_TURN_US = 1000000", "LONG_TURN_US = 0", ""},
	{"nobody goes on where one call ends", "if long or lock.steps >= STEPS then", "if long then", "who is behind a hundred hears of it"},
	{"a dead one is to go on", "(most or subscribers(waiter.channel) > 0)", "true", "who is behind a hundred hears of it"},
	{"finish counts places", "most and 2 * most or", "most or", "300 are told of a value"},
	// limits and shared locks
	{"a limit counts one too many", "lock.taken < min(w.limit, MAX_HOLDERS)", "lock.taken <= min(w.limit, MAX_HOLDERS)", ""},
	{"a kind beside another", "lock.taken == 0 or lock.kind == kind_of(w.limit) and lock", "lock.taken == 0 or kind_of(w.limit) > 0 and lock", ""},
	{"alone beside several", "return lock.taken == 0 or lock", "return not w.limit or lock.taken == 0 or lock", ""},
	{"more share than may", "lock.taken < min(w.limit, MAX_HOLDERS)", "lock.taken < w.limit", "a thousand share it"},
	{"the line is overtaken", "has_line(lock) or not fits(lock, w) then", "has_line(lock) and lock.taken == 0 or not fits(lock, w) then", ""},
	{"one of several is served", "      if lock.ends > 0 then return end", "      if lock.ends > 0 or fit then return end", ""},
	{"a dead head keeps all waiting", "not fit and not is_dead(lock, waiter, us, 4 * POLL_MS) then", "not fit then", "a dead waiter keeps nobody out"},
	{"a living head is passed over", "or silent > POLL_MS and not reachable", "or not reachable", "a dead waiter keeps nobody out"},
	{"a silent head keeps all waiting", "return silent > (most or silent) or", "return", "a dead waiter keeps nobody out"},
	{"a head is silent too soon", "not is_dead(lock, waiter, us, 4 * POLL_MS)", "not is_dead(lock, waiter, us, POLL_MS)", "a dead waiter keeps nobody out"},
	{"a minimum does not keep a slot", "  if mine.kept > ms(us) then\n    mine.owner", "  if false then\n    mine.owner", ""},
	{"leave keeps a slot", "    mine.kept = 0\n    left = give_back", "    if not mine.slot then mine.kept = 0 end\n    left = give_back", ""},
	{"a slot is not the lowest", "find(lock.slots, '0', 1, true) or #lock.slots + 1", "#lock.slots + 1", ""},
	{"an ended lease keeps its slot", "if now < over or ended == STEPS then", "if true then", ""},
	{"the end of a lease is looked for too late", "  lock.first = min(lock.first, mine.owner == '' and mine.kept or mine.ends)\n", "  lock.first = mine.ends\n", "leases end each at its time"},
	{"the key goes with the first lease", "lock.final = max(lock.final, mine.ends, mine.kept)", "lock.final = mine.ends", ""},
	{"a place in line stays in the field of the slot", "  if field(lock, at) == 'h' .. digits(mine.slot) then put(lock, at, false) end", "", ""},
	{"a slot is renewed by any token", "if mine and fence and fence ~= mine.fence and", "if mine and fence and not mine.slot and fence ~= mine.fence and", ""},
	{"one of several tokens is raised", "  if raise and mine and mine.slot then fail(", "  if false then fail(", ""},
	{"a renewal is not written into the slot", "    confirm(mine)\n    put_holder(lock, mine)\n", "    confirm(mine)\n", "leases end each at its time"},
	{"a repeat is not written into the slot", "mine.channel = w.channel end\n  put_holder(lock, mine)\n", "mine.channel = w.channel end\n", ""},
	{"an ended lease of a slot is revived", "and mine.owner == owner and ms(us) < mine.ends and mine or nil", "and mine.owner == owner and mine or nil", "100 leases end by a call"},
	{"who came back loses its new slot", "  if field(lock, at) == 'h' .. digits(mine.slot) then put", "  do put", "100 leases end by a call"},
	{"a slot is somebody else's", "return mine and mine.owner == owner and", "return mine and", "a crowd is only what it says"},
	{"the kinds mix", "  if lock.kind ~= kind_of(w.limit) then join_error('has', KINDS[lock.kind]) end\n", "", ""},
	{"a place keeps its first limit", "  local n = waits and stay(lock, w)\n  settle(lock, us)\n", "  settle(lock, us)\n  local n = waits and stay(lock, w)\n", ""},
	{"the kinds mix in line", "  if kind ~= kind_of(w.limit) then join_error('waits for', KINDS[kind]) end\n", "", ""},
	{"a broken slot is kept", "worked or h.ends > now, 0\n", "worked or h.ends > now, h.kept\n", ""},
	{"a break of all is told to one token", "lock.victim == ALL and (fence or 0) < lock.broken", "false", ""},
	{"a break of all is told to tokens alone", "lock.victim == ALL and (fence or 0)", "lock.victim == ALL and fence and fence", ""},
	{"a slot is granted for whole", "min(waiter.ttl, PROVISIONAL_MS), holds)", "waiter.limit and waiter.ttl or min(waiter.ttl, PROVISIONAL_MS), holds)", ""},
	{"nobody hears of a minimum", "  if mine.kept > ms(us) and has_line(lock) then tell_next(lock) end", "", "the next in line hears of a minimum"},
	{"nobody hears that the first left", "  if left and lock.ends == 0 and has_line(lock) and lock.steps < STEPS then tell_next(lock) end", "", "the next in line hears of a minimum"},
	{"a refused publish is found after the reply", "  if lock.tell and not holder(lock, us, w.owner) then commit(lock, us) end\n", "", "a refused publish goes on to the next"},
	{"a refused publish keeps its slot", "        if h ~= lock then end_slot(lock, h, us) end\n", "", "a refused publish goes on to the next"},
	{"plain hand-over: to a kind", "or w.holds ~= '' or w.limit or w.minimum > 0", "or w.holds ~= '' or w.minimum > 0", ""},
	{"plain ask: as another kind", "or mine.holds ~= '' or mine.limit then", "or mine.holds ~= '' then", ""},
	{"a plain lock can be joined", "  if joinable ~= (w.holds ~= '') then join_error('has', JOINABLE[joinable]) end\n", "", ""},
	{"a slot that is given back is nobody's", "  if left == 0 then\n    pass_on(lock, us, used)", "  if left == 0 then\n    if mine == lock then pass_on(lock, us, used) end", ""},
	{"a grant is published before anybody asks who hears it", "  return subscribers(waiter.channel) > 0\n", "  return true\n", ""},
	// the plain cases
	{"plain take: no expiry", "create(key, ends, 'owner', owner, 'until', ends, 'fence', digits(fence))", "create(key, digits(2 * stays), 'owner', owner, 'until', ends, 'fence', digits(fence))", ""},
	{"plain take: a young memory", "if guard and (guard < ttl or too_young(guard, us) > 0) then return nil end", "if guard and guard < ttl then return nil end", "a guarded lock is taken straight down"},
	{"plain take: any guard", "if guard and (guard < ttl or too_young(guard, us) > 0) then return nil end", "if guard and too_young(guard, us) > 0 then return nil end", "a guarded lock is taken straight down"},
	{"plain take: the guard is not kept", "fence, stays, 0, guard, 0, 0, ttl, 0, 0, 0))", "fence, stays, 0, 0, 0, 0, ttl, 0, 0, 0))", "a guarded lock is taken straight down"},
	{"plain take: the guard's lease is not kept", "fence, stays, 0, guard, 0, 0, ttl, 0, 0, 0))", "fence, stays, 0, guard, 0, 0, 1, 0, 0, 0))", "a guarded lock is taken straight down"},
	{"plain busy: not who is refused", "or has == owner or #has > MAX_BYTES", "or #has > MAX_BYTES", ""},
	{"plain renew: shortens", "ends = max(ends, now + ttl + 1)", "ends = now + ttl + 1", ""},
	{"plain renew: any token", "args[3] ~= 'FENCE' or args[4] ~= v[3])", "args[3] ~= 'FENCE')", ""},
	{"plain renew: revives", "if now >= ends or fence > us and fence > last then return nil end", "if fence > us and fence > last then return nil end", "an ended lease is settled first"},
	{"plain renew: leaves the expiry", "    call('PEXPIREAT', key, text)\n  elseif", "  elseif", "a renewal sets the expiry that it grants"},
	{"plain renew: forgets a token ahead", "if now >= ends or fence > us and fence > last then return nil end", "if now >= ends then return nil end", "a token ahead of the clock is remembered"},
	{"plain renew line: the key goes with the lease", "  call('PEXPIREAT', key, digits(expires))\n  return true", "  call('PEXPIREAT', key, digits(ends))\n  return true", ""},
	{"plain release: drops a minimum", "if holds ~= 0 or kept ~= 0 or due ~= 0 then return nil end", "if holds ~= 0 then return nil end", "a minimum counts from the grant"},
	{"plain release: drops holds", "if holds ~= 0 or kept", "if kept", ""},
	{"plain release: drops a token ahead", "  if top > last and top > clock() then return nil end\n", "", "a token ahead of the clock is remembered"},
	{"plain hand-over: to the deaf", "or w.minimum > 0 or subscribers(w.channel) == 0 then", "or w.minimum > 0 then", ""},
	{"plain hand-over: forgets the minimum", "or w.minimum > 0 or subscribers", "or subscribers", "a minimum counts from the grant"},
	{"plain hand-over: a whole lease", "now + min(w.ttl, PROVISIONAL_MS) + 1\n  local token", "now + w.ttl + 1\n  local token", ""},
	{"plain hand-over: of an ended lease", "if not ends or not fence or now >= ends or us <= top", "if not ends or not fence or us <= top", "an ended lease is settled first"},
	{"plain hand-over: the run is forgotten", "if head + 1 == tail and top == fence then", "if head + 1 == tail then", "a run is told to the last in line"},
	{"plain hand-over: a refused publish ends it", "if type(told) ~= 'number' then", "if false then", "a refused publish goes on to the next"},
	{"plain hand-over: nobody hears of long turns", "  if max(held, turn) > LONG_TURN_US then tell_next({", "  if false then tell_next({", "the next in line hears of long turns"},
	{"plain join: takes another's place", "    nth = plain_ask", "    nth = 1 or plain_ask", ""},
	{"plain join: no expiry of the line", "    if moves then call('PEXPIREAT', key, digits(expires)) end\n  end\n  return { 0", "  end\n  return { 0", ""},
	{"plain ask: never written down", "if w.asked - mine.asked <= POLL_MS / 2 then", "if true then", "a join sweeps the head"},
	{"plain ask: with other arguments", "if entry ~= was then", "if w.asked ~= mine.asked then", ""},
	{"plain ask: joins in another way", "mine.owner ~= w.owner or mine.holds ~= ''", "mine.owner ~= w.owner", "who leaves for a while hears of its turn"},
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
func catches(t *testing.T, d *server.Deployment, source string, check func(b *bed, k string)) (text string) {
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
	check(b, b.key("k"))
	return ""
}

// randomly compares random calls with the model.
func randomly(b *bed, _ string) {
	for seed := range uint64(12) {
		its := *b // keys and channels of its own: what the last one left would be taken for a mistake
		its.run += fmt.Sprint("-", seed)
		random(b.tb, &its, seed, 12_000)
	}
}

// Each of these changes is one that somebody could make, and each is caught.
func TestMutationsAreCaught(t *testing.T) {
	d := server.Single(t, server.Owned())
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			check := randomly
			if m.promise != "" {
				check = promises[m.promise]
			}
			text := catches(t, d, seeded.Text(t, functions.Source, m.old, m.new), check)
			if text == "" || check == nil {
				t.Error("nothing failed")
			}
			t.Logf("%.200s", text)
		})
	}
}
