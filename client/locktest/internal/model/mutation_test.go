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
			"  if not lock or lock.foreign then return busy(lock, us) end\n" +
			"  local mine",
		"  if not lock or lock.foreign then return busy(lock, us) end\n" +
			"  local mine",
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
		"  lock = settle(key, lock, us)\n" +
			"  if not lock then return take(key, us, owner, ttl, block, hold, '', guard) end",
		"  if lock and not lock.foreign and ms(us) > lock.ends then return take(key, us, owner, ttl, block, hold, '', guard) end\n" +
			"  if not lock then return take(key, us, owner, ttl, block, hold, '', guard) end",
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

// TestTheTieNoticesAChange changes the library in one place after the other.
func TestTheTieNoticesAChange(t *testing.T) {
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
