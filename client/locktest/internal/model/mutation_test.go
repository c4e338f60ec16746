package model

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// mutation is a change of the library: the tie must notice it.
type mutation struct{ name, old, new string }

var mutations = []mutation{
	{"a longer provisional lease", "local PROVISIONAL_MS = 2000 ", "local PROVISIONAL_MS = 2001 "},
	{"a line lives longer", "local LINE_MS = 60000 ", "local LINE_MS = 60001 "},
	{"silence is noticed earlier", "local POLL_MS = 5000 ", "local POLL_MS = 4999 "},
	{"silence is noticed later", "local POLL_MS = 5000 ", "local POLL_MS = 5001 "},
	{"the dead are not swept out", "  sweep(key, lock, us)\n", ""},
	{"the last in line is served first", "    local waiter, behind = look(key, lock, lock.head)\n    put(", `
    local a, b = field(key, lock, place(lock.head)), field(key, lock, place(lock.tail - 1))
    put(lock, place(lock.head), b)
    put(lock, place(lock.tail - 1), a)
    local waiter, behind = look(key, lock, lock.head)
    put(`},
	{"who joins goes to the head", "  lock.tail, lock.count = lock.tail + 1, lock.count + 1\n  return lock.count\n", `
  local a, b = field(key, lock, place(lock.head)), field(key, lock, place(lock.tail))
  put(lock, place(lock.head), b)
  put(lock, place(lock.tail), a)
  lock.tail, lock.count = lock.tail + 1, lock.count + 1
  return lock.count
`},
	{
		"renewal without a look at the owner",
		"local mine = held_by(lock, owner) and (not fence or fence == lock.fence)\n",
		"local mine = lock.ends > 0\n",
	},
	{
		"renewal without a look at the token",
		"local mine = held_by(lock, owner) and (not fence or fence == lock.fence)\n",
		"local mine = held_by(lock, owner)\n",
	},
	{
		"renewal of an ended lease",
		"  lock = settle(key, lock, us)\n" +
			"  -- A memory that has forgotten",
		"  -- A memory that has forgotten",
	},
	{
		"release without a look at the owner",
		"  if mine then left = give_back(key, lock, us, hold, used) end\n",
		"  mine = true\n" +
			"  left = give_back(key, lock, us, hold, used)\n",
	},
	{
		"quick release without a look at the owner",
		"  if v[1] == owner and hold == '' and not v[4] then",
		"  if v[1] and hold == '' and not v[4] then",
	},
	{
		"quick release of a lock with a line",
		"  if v[1] == owner and hold == '' and not v[4] then",
		"  if v[1] == owner and hold == '' then",
	},
	{
		"leave without a look at the owner",
		"  if held_by(lock, owner) and (not fence or lock.fence == fence) then",
		"  if lock and (not fence or lock.fence == fence) then",
	},
	{
		"leave without a look at the token",
		"  if held_by(lock, owner) and (not fence or lock.fence == fence) then",
		"  if held_by(lock, owner) then",
	},
	{
		"leave keeps what was handed over",
		"    left = give_back(key, lock, us, hold) ~= nil or left\n",
		"    left = true\n",
	},
	{
		"the lease ends a millisecond early",
		"ms(us) <= lock.ends then return lock end",
		"ms(us) < lock.ends then return lock end",
	},
	{
		"the lease ends a millisecond late",
		"ms(us) <= lock.ends then return lock end",
		"ms(us) <= lock.ends + 1 then return lock end",
	},
	{"the key expires with the lease", "  return lock.ends + 1\n", "  return lock.ends\n"},
	{
		"a lock without an expiry",
		"  local set = try('PEXPIREAT', key, digits(ends + 1))\n",
		"  local set = 1\n",
	},
	{
		"the server's memory is not asked for a token",
		"  last = us > last and us or last + 1\n",
		"  last = us\n",
	},
	{
		"the key is not asked for a token",
		"  if last > above then return last end\n",
		"  do return last end\n",
	},
	{"a released token is forgotten", "      if fence > last then note(fence, clock()) end\n", ""},
	{
		"handed to a waiter that cannot be told",
		"  return subscribers(waiter.channel) > 0\n",
		"  return true\n",
	},
	{"the caller is passed over", "  if waiter.owner == lock.caller then return true end\n", ""},
	{
		"the caller is told by a message",
		"  if waiter.owner ~= lock.caller and waiter.channel ~= '' then lock.tell",
		"  if waiter.channel ~= '' then lock.tell",
	},
	{
		"nobody is told",
		"  if waiter.owner ~= lock.caller and waiter.channel ~= '' then lock.tell = waiter.channel end\n",
		"",
	},
	{
		"acquire overtakes the line",
		"  local lock = not none and settle(key, read(key, owner), us)\n",
		"  local lock = not none and read(key, owner)\n" +
			"  if lock and not lock.foreign and ms(us) > lock.ends then lock = nil else lock = lock and settle(key, lock, us) end\n",
	},
	{
		"a repeat does not start the lease anew",
		"  prolong(lock, us, ttl)\n" +
			"  if lock.fence <= us",
		"  if lock.fence <= us",
	},
	{
		"a break ends the line too",
		"  pass_on(key, lock, us)\n" +
			"  commit(key, lock, us)\n" +
			"  if not held then",
		"  call('DEL', key)\n" +
			"  if not held then",
	},
}

// guardMutations are changes of what the library does with a guard.
var guardMutations = []mutation{
	{
		"a young memory grants a free lock",
		"  if closed > 0 then return { 0, closed, '', 0 } end\n",
		"",
	},
	{
		"a young memory hands over",
		"  lock.closed = has_line(lock) and too_young(lock.guard, us) or 0\n",
		"  lock.closed = 0\n",
	},
	{
		"a young memory hands over to the caller",
		"  lock.closed = has_line(lock) and too_young(lock.guard, us) or 0\n",
		"  local first = has_line(lock) and look(key, lock, lock.head)\n" +
			"  local other = first and first.owner ~= lock.caller\n" +
			"  lock.closed = other and too_young(lock.guard, us) or 0\n",
	},
	{
		"a young memory keeps an ended lock without a line",
		"  lock.closed = has_line(lock) and too_young(lock.guard, us) or 0\n",
		"  lock.closed = too_young(lock.guard, us)\n" +
			"  if lock.closed > 0 and not has_line(lock) then lock.tail = lock.tail + 1 end\n",
	},
	{
		"a young memory forgets the token of a lock that it leaves",
		"  note(lock.top, us)\n" +
			"  lock.gone",
		"  if lock.closed == 0 then note(lock.top, us) end\n" +
			"  lock.gone",
	},
	{
		"a line that is left does not live on",
		"  if has_line(lock) then return math.max(lock.ends, now) + LINE_MS end\n",
		"  if has_line(lock) and lock.ends == 0 and lock.expires then return lock.expires end\n" +
			"  if has_line(lock) then return math.max(lock.ends, now) + LINE_MS end\n",
	},
	{
		"a repeat waits for an old memory",
		"  keep_to(lock, guard, ttl)\n" +
			"  if joinable then",
		"  local closed = too_young(lock.guard, us)\n" +
			"  if closed > 0 then return { 0, closed, lock.owner, lock.count } end\n" +
			"  if joinable then",
	},
	{
		"the caller is not told for how long yet",
		"  if lock.ends == 0 then return { 0, lock.closed, '', lock.count } end\n",
		"  if lock.ends == 0 then return { 0, 0, '', lock.count } end\n",
	},
	{
		"a memory is old enough a millisecond early",
		"  return math.max(0, guard - ms(age(us)))\n",
		"  return math.max(0, guard - 1 - ms(age(us)))\n",
	},
	{
		"a memory is old enough a millisecond late",
		"  return math.max(0, guard - ms(age(us)))\n",
		"  return math.max(0, guard + 1 - ms(age(us)))\n",
	},
	{
		"the guard is not kept in the lock",
		"  local suffix = guard_text(guard)\n",
		"  local suffix = ''\n",
	},
	{
		"the guard is not kept with a line",
		"    lock.holds) .. guard_text(lock.guard)\n",
		"    lock.holds)\n",
	},
	{
		"the guard goes with the line",
		" and lock.holds == 0 and lock.guard == 0 then\n",
		" and lock.holds == 0 then\n",
	},
	{"a renewal for longer than the guard", "    keep_to(lock, 0, ttl)\n", ""},
	{
		"a lease may not be as long as the guard",
		"  if lock.guard > 0 and ttl > lock.guard then\n",
		"  if lock.guard > 0 and ttl >= lock.guard then\n",
	},
	{
		"a renewal does not begin the memory",
		"    too_young(lock.guard, us)\n",
		"",
	},
	{
		"a memory does not begin anew with a replication id",
		"  if id ~= history or us < born then",
		"  if history == '' or us < born then",
	},
	{
		"a memory is old when it begins",
		"or us < born then born, history = us, id end\n",
		"or us < born then born, history = 1, id end\n",
	},
}

// TestTheTieNoticesAChange changes the library in one place after the other.
func TestTheTieNoticesAChange(t *testing.T) { notices(t, mutations, edges) }

// TestTheGuardedTieNoticesAChange does so with what is about guards.
func TestTheGuardedTieNoticesAChange(t *testing.T) { notices(t, guardMutations, guardedEdges) }

func notices(t *testing.T, mutations []mutation, edges func() ([]tied, error)) {
	t.Helper()
	all, err := edges()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			if n := strings.Count(functions.Source, m.old); n != 1 {
				t.Fatalf("the library has %q %d times, not once: change it in another way", m.old, n)
			}
			began := time.Now()
			calls, err := replay(t, strings.Replace(functions.Source, m.old, m.new, 1), all)
			if err == nil {
				t.Fatalf("not noticed in %d calls", calls)
			}
			t.Logf("noticed by call %d after %v: %v", calls, time.Since(began).Round(time.Millisecond), err)
		})
	}
}
